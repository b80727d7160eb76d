import { useEffect, useMemo, useState } from 'preact/hooks';
import type { DataOf } from '../../../../management/client/index.ts';
import { get, post } from '../../app/requests.ts';
import { topicsIn } from '../../model/rules.ts';
import type { Fault, Word } from '../../parts/editor.tsx';
import { useLoaded } from '../../parts/loading.ts';

/** The event whose columns messages have. */
const MESSAGES = '$events/message_publish';
const TYPING_MS = 400;

/** The columns and functions that a statement can use. */
export function useWords(statement: string): readonly Word[] {
  const { value } = useLoaded('functions', (signal) => get('/x/rules/functions', { signal }));
  const topics = topicsIn(statement).join('\n');
  return useMemo(() => {
    const wanted = new Set(topics.split('\n').map((topic) => (topic.startsWith('$events/') ? topic : MESSAGES)));
    const columns = (value?.events ?? []).filter(({ event }) => wanted.has(event)).flatMap((event) => event.columns);
    const types = new Map(columns.map(({ name, type }) => [name, type]));
    return [
      ...[...types].map(([label, about]): Word => ({ label, kind: 'column', about })),
      ...(value?.functions ?? []).map(
        ({ name, params, returns, about }): Word => ({
          label: name,
          kind: 'function',
          about: `${name}(${params.join(', ')}): ${returns}. ${about}`
        })
      )
    ];
  }, [value, topics]);
}

/** Errors and hints of a statement, a moment after a person has stopped typing. */
export function useValidation(statement: string): {
  readonly fault: Fault | undefined;
  readonly hints: readonly string[];
} {
  const [answer, setAnswer] = useState<DataOf<'hosted', 'POST', '/x/rules/validate'>>();
  useEffect(() => {
    const aborted = new AbortController();
    const timer = setTimeout(() => {
      post('/x/rules/validate', { body: { rawsql: statement }, signal: aborted.signal, isBackground: true }).then(
        setAnswer,
        () => undefined
      ); // saving says what is wrong
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [statement]);
  return useMemo(() => {
    const [error] = answer?.errors ?? [];
    if (error === undefined) return { fault: undefined, hints: answer?.hints ?? [] };
    const { message, hint, line = 1, column = 1, length } = error;
    return { fault: { message, line, column, length }, hints: hint === undefined ? [] : [hint] };
  }, [answer]);
}
