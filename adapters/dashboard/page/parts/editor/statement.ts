// The editor of statements. It is in a shadow root: there the editor may add styles under the policy of the page, which allows none in the document.
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  closeBrackets,
  completionKeymap
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { Fault, Word } from './editor.tsx';

/** An editor in the page. */
export interface StatementEditor {
  setWords(words: readonly Word[]): void;
  /** Mark an error at its place. */
  setFault(fault: Fault | undefined): void;
  end(): void;
}

const KEYWORDS =
  'select from where as and or not in is null case when then else end foreach do incase like between group by having order limit distinct true false div mod window join left right full inner cross on over partition filter create stream table with';
const WORDS = new Set(KEYWORDS.split(' '));

const LANGUAGE = StreamLanguage.define<object>({
  startState: () => ({}),
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match('--')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match(/'(?:[^'\\]|\\.|'')*'?/) || stream.match(/"(?:[^"\\]|\\.)*"?/)) return 'string';
    if (stream.match(/\d+(\.\d+)?(e[+-]?\d+)?/i)) return 'number';
    if (stream.match(/[a-z_$][\w$]*/i)) {
      const word = stream.current();
      if (WORDS.has(word.toLowerCase())) return 'keyword';
      return stream.peek() === '(' ? 'function' : 'variableName';
    }
    stream.next();
    return 'operator';
  },
  tokenTable: { function: tags.function(tags.variableName) }
});

const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--line-2)', fontWeight: '600' },
  { tag: tags.string, color: 'var(--line-3)' },
  { tag: tags.number, color: 'var(--line-1)' },
  { tag: tags.comment, color: 'var(--text-quiet)', fontStyle: 'italic' },
  { tag: tags.function(tags.variableName), color: 'var(--line-4)' }
]);

const THEME = EditorView.theme({
  '&': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    fontSize: '0.93rem',
    border: '1px solid var(--line-strong)',
    borderRadius: '6px'
  },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '1px' },
  '.cm-content': {
    minHeight: '7rem',
    caretColor: 'var(--text)',
    fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace'
  },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': {
    backgroundColor: 'var(--surface-2)',
    color: 'var(--text-quiet)',
    border: 'none',
    borderRadius: '6px 0 0 6px'
  },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft) !important' },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '6px'
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' }
});

/** The icons of completions. */
const COMPLETED = { column: 'variable', function: 'function', stream: 'class' } as const;

/** Make an editor in an element. */
export function editStatement(
  place: HTMLElement,
  {
    text,
    label,
    onChange,
    onRun
  }: {
    readonly text: string;
    readonly label: string;
    readonly onChange: (text: string) => void;
    readonly onRun: () => void;
  }
): StatementEditor {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' });
  let words: readonly Completion[] = [];
  const complete = (context: CompletionContext) => {
    const before = context.matchBefore(/[\w$.]+/);
    if (before === null && !context.explicit) return null;
    return { from: before?.from ?? context.pos, options: [...words], validFor: /^[\w$.]*$/ };
  };
  const ran = () => {
    onRun();
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        closeBrackets(),
        LANGUAGE,
        syntaxHighlighting(COLORS),
        THEME,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': label }),
        autocompletion({ override: [complete] }),
        keymap.of([{ key: 'Mod-Enter', run: ran }, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        })
      ]
    })
  });
  return {
    setWords(next) {
      words = [
        ...KEYWORDS.split(' ').map((word) => ({ label: word.toUpperCase(), type: 'keyword' })),
        ...next.map(({ label, kind, about }) => ({
          label,
          type: COMPLETED[kind],
          ...(about && { info: about })
        }))
      ];
    },
    setFault(fault) {
      if (fault === undefined) return view.dispatch(setDiagnostics(view.state, []));
      const line = view.state.doc.line(Math.max(1, Math.min(fault.line, view.state.doc.lines)));
      const from = Math.min(line.from + fault.column - 1, line.to);
      const to = Math.min(Math.max(from + (fault.length ?? 1), from), line.to);
      view.dispatch(
        setDiagnostics(view.state, [
          { from: to === from ? Math.max(line.from, from - 1) : from, to, severity: 'error', message: fault.message }
        ])
      );
    },
    end: () => view.destroy()
  };
}
