import { useMemo, useRef } from 'preact/hooks';
import type { DataOf } from '../../../../management/client/index.ts';
import { get, post } from '../../app/requests.ts';
import { eventOf, topicsIn } from '../../model/rules.ts';
import { type Checked, checkedOf, useChecked } from '../../parts/editor/checked.ts';
import type { Word } from '../../parts/editor/editor.tsx';
import { useLoaded } from '../../parts/loading.ts';

/** The functions of statements, and the events with their columns. */
export type Language = DataOf<'hosted', 'GET', '/x/rules/functions'>;

/** Load the language of statements. */
export function useLanguage(): Language | undefined {
  return useLoaded('functions', (signal) => get('/x/rules/functions', { signal })).value;
}

/** The columns and functions that a statement can use. */
export function useWords(value: Language | undefined, statement: string): readonly Word[] {
  const topics = topicsIn(statement).join('\n');
  return useMemo(() => {
    const wanted = new Set(topics.split('\n').map(eventOf));
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

/** A check of a statement. */
interface CheckedRule extends Checked {
  /** The columns that it reads, or `*`; of one that is not valid, those that it read before. */
  readonly columns: readonly string[];
}

/** Errors and hints of a statement, a moment after a person has stopped typing. */
export function useValidation(statement: string): CheckedRule {
  const answer = useChecked(statement, (rawsql, signal) =>
    post('/x/rules/validate', { body: { rawsql }, signal, isBackground: true })
  );
  const columns = useRef<readonly string[]>([]);
  if (answer?.valid) columns.current = answer.columns;
  return useMemo(
    () => ({ ...checkedOf(answer?.errors ?? [], answer?.hints ?? []), columns: columns.current }),
    [answer]
  );
}
