import { useMemo } from 'preact/hooks';
import { get, request } from '../../app/requests.ts';
import { topicsIn } from '../../model/rules.ts';
import type { Word } from '../../parts/editor.tsx';
import { useLoaded } from '../../parts/loading.ts';

/** The event whose columns messages have. */
const MESSAGES = '$events/message_publish';

/** A function of the SQL of rules, as the interface describes it. */
interface FunctionRow {
  readonly name: string;
  readonly about?: string;
  readonly description?: string;
  readonly usage?: string;
}

/** The columns and functions that a statement can use. */
export function useWords(statement: string): readonly Word[] {
  const { value: events } = useLoaded('events', (signal) => get('/rule_events', { signal }));
  const { value: functions } = useLoaded('functions', async (signal) => {
    const { data } = await request('GET', '/x/rules/functions', { signal });
    return data as readonly FunctionRow[];
  });
  const topics = topicsIn(statement).join('\n');
  return useMemo(() => {
    const wanted = new Set(topics.split('\n').map((topic) => (topic.startsWith('$events/') ? topic : MESSAGES)));
    const columns = (events ?? []).filter(({ event }) => wanted.has(event)).flatMap((event) => event.columns);
    return [
      ...[...new Set(columns)].map((label): Word => ({ label, kind: 'column' })),
      ...(functions ?? []).map(
        ({ name, about, description, usage }): Word => ({
          label: name,
          kind: 'function',
          about: about ?? description ?? usage
        })
      )
    ];
  }, [events, functions, topics]);
}
