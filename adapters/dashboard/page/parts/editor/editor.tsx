import { useEffect, useRef } from 'preact/hooks';
import type { StatementEditor } from './statement.ts';

/** A word that the editor completes. */
export interface Word {
  readonly label: string;
  readonly kind: 'column' | 'function' | 'stream';
  readonly about?: string | undefined;
}

/** An error at its place in a text. */
export interface Fault {
  readonly message: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly length?: number | undefined;
}

/** An editor for statements, with completion and errors at their place. It begins with a text. Control and Enter run the statement. */
export function Editor({
  label,
  text,
  words,
  fault,
  onChange,
  onRun
}: {
  readonly label: string;
  readonly text: string;
  readonly words: readonly Word[];
  readonly fault: Fault | undefined;
  readonly onChange: (text: string) => void;
  readonly onRun: () => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<StatementEditor>();
  const latest = useRef({ text, words, fault, onChange, onRun });
  latest.current = { text, words, fault, onChange, onRun };
  useEffect(() => {
    let isShown = true;
    void import('./statement.ts').then(({ editStatement }) => {
      if (!isShown || place.current === null) return;
      const made = editStatement(place.current, {
        text: latest.current.text,
        label,
        onChange: (next) => latest.current.onChange(next),
        onRun: () => latest.current.onRun()
      });
      editor.current = made;
      made.setWords(latest.current.words);
      made.setFault(latest.current.fault);
    });
    return () => {
      isShown = false;
      editor.current?.end();
    };
  }, []);
  useEffect(() => editor.current?.setWords(words), [words]);
  useEffect(() => editor.current?.setFault(fault), [fault]);
  return <div ref={place} class="editor" />;
}
