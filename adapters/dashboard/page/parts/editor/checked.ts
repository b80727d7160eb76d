import { useEffect, useState } from 'preact/hooks';
import type { Fault } from './editor.tsx';

const TYPING_MS = 400;

/** The answer of a check of a statement. */
export interface Checked {
  readonly fault: Fault | undefined;
  readonly hints: readonly string[];
}

/** An error as the interfaces describe it. Without a place, it is that of the whole statement. */
interface StatementError {
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly length?: number;
  readonly hint?: string;
}

/** Check a text a moment after a person has stopped typing. A check that fails is left out: saving says what is wrong. */
export function useChecked<T>(
  text: string,
  check: (text: string, signal: AbortSignal) => Promise<T>
): Awaited<T> | undefined {
  const [answer, setAnswer] = useState<Awaited<T>>();
  useEffect(() => {
    const aborted = new AbortController();
    const timer = setTimeout(() => {
      Promise.resolve(check(text, aborted.signal)).then(
        (found) => setAnswer(() => found),
        () => undefined
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [text]);
  return answer;
}

/** The first error, at its place, and hints. */
export function checkedOf([error]: readonly StatementError[], hints: readonly string[]): Checked {
  if (error === undefined) return { fault: undefined, hints };
  const { message, hint, line = 1, column = 1, length } = error;
  return { fault: { message, line, column, length }, hints: hint === undefined ? [] : [hint] };
}
