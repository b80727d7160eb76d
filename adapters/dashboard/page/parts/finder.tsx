import { useEffect, useId, useState } from 'preact/hooks';
import { choose, go, hrefOf } from '../app/place.ts';
import { get, getPage } from '../app/requests.ts';
import { isAdministrator, logOut } from '../app/session.ts';
import { chooseTheme } from '../app/theme.ts';
import {
  type ActionName,
  type FinderRow,
  type FinderTexts,
  type Found,
  type FoundOption,
  finderRows,
  MIN_OPTION,
  searchedText,
  stillFound
} from '../model/finder.ts';
import type { ViewName } from '../model/places.ts';
import { T } from '../texts.ts';
import { Dialog } from './dialog.tsx';
import { Icon } from './icons.tsx';
import { Name } from './name.tsx';
import { notifyProblem } from './notices.tsx';
import { described } from './problem.tsx';
import { VIEW_ROWS } from './views.tsx';

const F = T.finder;
const FOUND_ROWS = 8;
const TYPING_MS = 150;

const TEXTS: FinderTexts = {
  pages: (Object.keys(VIEW_ROWS) as ViewName[])
    .filter((name) => VIEW_ROWS[name].within === undefined)
    .flatMap((name) => [
      [name, T.views[name]] as const,
      ...Object.entries(VIEW_ROWS[name].tabs ?? {}).map(
        ([tab, text]) => [name, `${T.views[name]}: ${text}`, tab] as const
      )
    ]),
  actions: F.actions,
  verbs: F.verbs
};

/** One box that finds pages, clients, topics, subscriptions, rules and actions: Control and K. */
export function Finder() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" class="finder-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="search" />
        <span>{F.find}</span>
        <kbd>{F.keys}</kbd>
      </button>
      {isOpen && (
        <Dialog title={F.title} isWide onClose={() => setOpen(false)}>
          <Box onClose={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

/** The answer of the broker to a text. */
interface Answer {
  readonly text: string;
  readonly found: readonly Found[];
  readonly isComplete: boolean;
  readonly error?: unknown;
}

const NONE: Answer = { text: '', found: [], isComplete: true };

/** The answer of the broker to a text, a moment after the last key. */
function useFound(text: string): Answer {
  const [answer, setAnswer] = useState(NONE);
  useEffect(() => {
    if (text === '') return undefined;
    const aborted = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const query = { q: text, limit: FOUND_ROWS };
        const { entries, is_complete } = await get('/x/search', { query, signal: aborted.signal });
        setAnswer({ text, found: entries, isComplete: is_complete });
      } catch (error) {
        if (!aborted.signal.aborted) setAnswer({ text, found: [], isComplete: true, error });
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [text]);
  return text === '' ? NONE : answer;
}

/** The options of the broker, which are loaded once, for the first text that may name one. */
let known: Promise<readonly FoundOption[]> | undefined;

function useOptions(isWanted: boolean): readonly FoundOption[] | undefined {
  const [options, setOptions] = useState<readonly FoundOption[]>();
  useEffect(() => {
    if (!isWanted) return;
    known ??= getPage('/x/options', { query: { _limit: MAX_OPTIONS } }).then(({ data }) => data);
    known.then(setOptions, () => {
      known = undefined; // tried again with the next text
    });
  }, [isWanted]);
  return options;
}

/** More options than a broker has. */
const MAX_OPTIONS = 10_000;

function Box({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState<string>();
  const id = useId();
  const text = searchedText(typed, F.verbs);
  const answer = useFound(text);
  const isAnswered = answer.text === text;
  const options = useOptions(text.length >= MIN_OPTION);
  const rows = finderRows(typed, isAnswered ? answer.found : stillFound(answer.found, text), TEXTS, options);
  // a row that was chosen with the keys stays chosen while others come
  const active = Math.max(
    0,
    rows.findIndex(({ key }) => key === chosen)
  );
  useEffect(() => document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: 'nearest' }), [active]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen(rows[(active + step + rows.length) % Math.max(1, rows.length)]?.key);
    else if (event.key === 'Enter') document.getElementById(`${id}-${active}`)?.click();
    else return;
    event.preventDefault();
  };
  return (
    <div class="finder">
      <input
        role="combobox"
        aria-label={F.title}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={`${id}-${active}`}
        placeholder={F.placeholder}
        value={typed}
        spellcheck={false}
        autocapitalize="none"
        autocomplete="off"
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setChosen(undefined);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={`${id}-list`} class="finder-list" role="listbox" aria-label={F.title}>
        {rows.map((row, index) => (
          <Option key={row.key} id={`${id}-${index}`} row={row} isActive={index === active} onClose={onClose} />
        ))}
      </div>
      <p class="aside" role="status">
        {answer.error !== undefined && isAnswered
          ? F.failed(described(answer.error).message)
          : text !== '' && !isAnswered
            ? F.searching
            : answer.isComplete
              ? F.hint
              : F.incomplete}
      </p>
    </div>
  );
}

function Option({
  id,
  row,
  isActive,
  onClose
}: {
  readonly id: string;
  readonly row: FinderRow;
  readonly isActive: boolean;
  readonly onClose: () => void;
}) {
  const { kind, text, name, detail, to, run, isChange = false } = row;
  const isForbidden = isChange && !isAdministrator.value;
  const shared = {
    id,
    role: 'option',
    tabIndex: -1,
    'aria-selected': isActive,
    'aria-disabled': isForbidden ? true : undefined,
    title: isForbidden ? T.errors.forbidden : undefined
  } as const;
  const content = (
    <>
      <span class="aside finder-kind">
        {kind === 'guess' && to ? F.guesses[to.view as keyof typeof F.guesses] : F.kinds[kind]}
      </span>
      <span class="finder-name">
        {text} {name !== undefined && <Name of={name} max={100} isPlain />}
      </span>
      <span class="aside">{isForbidden ? F.forbidden : detail}</span>
    </>
  );
  if (to === undefined || isForbidden)
    return (
      <button
        type="button"
        {...shared}
        onClick={() => {
          if (isForbidden || run === undefined) return;
          onClose();
          perform(run);
        }}
      >
        {content}
      </button>
    );
  return (
    <a
      {...shared}
      href={hrefOf(to.view, to.choices)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        onClose(); // first, so that a dialog of the view has the focus
        go(to.view, to.choices);
      }}
    >
      {content}
    </a>
  );
}

function perform(name: ActionName): void {
  if (name === 'logOut') void logOut().catch(notifyProblem);
  else if (name === 'password') choose({ do: 'password' });
  else if (name === 'light' || name === 'dark' || name === 'system') chooseTheme(name);
}
