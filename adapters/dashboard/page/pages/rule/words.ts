import { useMemo } from 'preact/hooks';
import { get, post } from '../../app/requests.ts';
import { topicsIn } from '../../model/rules.ts';
import { type Checked, checkedOf, useChecked } from '../../parts/editor/checked.ts';
import type { Word } from '../../parts/editor/editor.tsx';
import { useLoaded } from '../../parts/loading.ts';

/** The event whose columns messages have. */
const MESSAGES = '$events/message_publish';

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
export function useValidation(statement: string): Checked {
  const answer = useChecked(statement, (rawsql, signal) =>
    post('/x/rules/validate', { body: { rawsql }, signal, isBackground: true })
  );
  return useMemo(() => checkedOf(answer?.errors ?? [], answer?.hints ?? []), [answer]);
}
