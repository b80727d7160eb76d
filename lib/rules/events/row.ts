import type { Localized } from '../../base/fields.ts';
import type { EventName } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Value } from '../../sql/values.ts';
import type { Column, Columns } from './column.ts';
import type { RuleEventName } from './event-name.ts';

/** An event from which rules can select. */
export interface RuleEventEntry {
  readonly name: RuleEventName;
  /** `$events/client_connected`. */
  readonly topic: string;
  /** Other spellings of the topic, such as `$events/client/connected`, as in later versions of the original. */
  readonly spellings: readonly string[];
  /** The event of the broker from which it is derived. */
  readonly source: EventName;
  /** Check whether a value of the broker's event is this event. */
  readonly accepts: (value: BrokerEvents[EventName]) => boolean;
  /** The names of the columns, in the documented order. */
  readonly names: readonly string[];
  readonly columns: ReadonlyMap<string, Column<unknown>>;
  readonly title: Localized;
  readonly description: Localized;
  /** The columns that a form for tests shows. */
  readonly testNames: readonly string[];
  /** The values of columns in a test, where they differ from those of other events. */
  readonly testValues: Readonly<Record<string, Value>>;
  /** A valid example statement. */
  readonly example: string;
}

/** The fields of a row that are not derived. */
interface RowInput<V> extends Pick<RuleEventEntry, 'title' | 'description' | 'testNames' | 'testValues'> {
  /** The columns besides `event`, `timestamp` and `node`. */
  readonly columns: Columns<V>;
  /** Selects the values of the broker's event that are this event. Default: all. */
  readonly accepts?: (value: V) => boolean;
  /** Default: all columns. */
  readonly example?: string;
  /** Another spelling of the topic, below `$events/`. */
  readonly spelling?: string;
}

/** Make a row. @param source the event of the broker from which it is derived */
export function row<E extends EventName>(
  name: RuleEventName,
  source: E,
  { columns, accepts = () => true, example, spelling, ...texts }: RowInput<BrokerEvents[E]>
): RuleEventEntry {
  const topic = `$events/${name.replace('.', '_')}`;
  const all = { event: () => name, ...columns, timestamp: timestampOf, node: nodeOf } as Columns<unknown>;
  return {
    name,
    topic,
    spellings: [name.replace('.', '/'), name, ...(spelling === undefined ? [] : [spelling])].map((s) => `$events/${s}`),
    source,
    accepts: accepts as RuleEventEntry['accepts'],
    names: Object.keys(all),
    columns: new Map(Object.entries(all)),
    example: example ?? `SELECT * FROM "${topic}"`,
    ...texts
  };
}

const timestampOf: Column<unknown> = (_value, event) => event.timestamp;
const nodeOf: Column<unknown> = (_value, event) => event.node;
