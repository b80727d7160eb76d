// The view that shows the cause of an alarm of the broker, by the id of the alarm; and lists that are read while they change.
import type { ViewName } from './places.ts';

/** The beginnings of ids and their views, the longest first. `rest` is the choice that has the rest of the id. */
const CAUSES: readonly (readonly [
  begin: string,
  view: ViewName,
  choices?: Readonly<Record<string, string>>,
  rest?: string
])[] = [
  ['descriptors_short:', 'listeners'],
  ['too_many_connections', 'listeners'],
  ['too_many_processes', 'clients'],
  ['slow_consumers', 'clients'],
  ['flapping_detected:', 'client', { tab: 'history' }, 'id'],
  ['client_rejected', 'access', { tab: 'rights' }],
  ['outbox_failing:webhook:', 'webhooks'],
  ['outbox_overflow:webhook:', 'webhooks'],
  ['outbox_failing:resource:', 'rules', { tab: 'resources' }],
  ['outbox_overflow:resource:', 'rules', { tab: 'resources' }],
  ['outbox_', 'rules'],
  ['resource/', 'rules', { tab: 'resources' }],
  ['bridge_', 'bridges'],
  ['store_', 'node'],
  ['memory_high_watermark', 'overview'],
  ['event_loop_delay', 'overview'],
  ['cpu_high_watermark', 'node'],
  ['system_memory_high_watermark', 'node']
];

/** An alarm about the deliveries of an action. Ids of rules contain no spaces. */
const OF_ACTION = /^outbox_(?:failing|overflow):action \S+ of rule (\S+)$/;

/** The place that shows the cause of an alarm; undefined: an alarm of the app. */
export function causeOf(
  id: string
): { readonly view: ViewName; readonly choices: Readonly<Record<string, string>> } | undefined {
  const [, rule] = OF_ACTION.exec(id) ?? [];
  if (rule !== undefined) return { view: 'rule', choices: { id: rule } };
  const row = CAUSES.find(([begin]) => id.startsWith(begin));
  if (row === undefined) return undefined;
  const [begin, view, choices = {}, rest] = row;
  return { view, choices: rest === undefined ? choices : { ...choices, [rest]: id.slice(begin.length) } };
}

/** The rows of a list that are shown, compared with the latest ones. */
export interface Held<Row> {
  /** In the order in which they are shown, with their latest facts. */
  readonly rows: readonly Row[];
  /** The keys of shown rows that the latest list does not have. */
  readonly ended: ReadonlySet<string>;
  /** Number of rows of the latest list that are not shown. */
  readonly added: number;
}

/** Compare the rows that are shown with the latest ones. */
export function heldRows<Row>(shown: readonly Row[], latest: readonly Row[], keyOf: (row: Row) => string): Held<Row> {
  const current = new Map(latest.map((row) => [keyOf(row), row]));
  const keys = shown.map(keyOf);
  const known = new Set(keys);
  return {
    rows: shown.map((row, index) => current.get(keys[index]) ?? row),
    ended: new Set(keys.filter((key) => !current.has(key))),
    added: [...current.keys()].filter((key) => !known.has(key)).length
  };
}
