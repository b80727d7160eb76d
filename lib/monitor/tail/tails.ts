import type { BaseServices } from '../../base/base-services.ts';
import { InvalidInput, StateError } from '../../base/errors.ts';
import { field, readOptions, type Size, unknownName } from '../../base/fields.ts';
import type { TimeReading } from '../../base/time-reading.ts';
import { EVENT_NAMES, EVENTS, type EventName } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Events } from '../../events/events.ts';
import type { Watcher } from '../../routing/watchers.ts';
import { checkTopicFilter, parseSharedFilter } from '../../topics/topic.ts';
import type { ConditionTime, Tail } from './tail.ts';
import type { TailedEvent } from './tail-columns.ts';

/** Maximum number of tails at a time. */
const MAX_TAILS = 100;
/** Tails see a message before rules do, so that what rules publish because of it follows. */
const BEFORE_RULES = -1;

const OPTIONS = {
  filter: field('string', '#', 'Of the events of messages, only those whose topic matches this topic filter.', {
    check: checkFilter
  }),
  where: field('string', undefined as string | undefined, 'Only events that satisfy this condition of SQL.', {
    max: 8_192
  }),
  names: field('array', ['message.publish'] as readonly EventName[], 'Names of events.', { check: checkNames }),
  maxPayloadBytes: field('size', 4_096, 'Only this many bytes at the beginning of a payload are kept.', {
    unit: 'bytes',
    max: 65_536
  }),
  hidesPayloads: field('boolean', false, 'Neither rows nor the condition have payloads or messages of errors.')
} as const;

/** Options of `broker.monitor.tail`. */
export interface TailOptions {
  /**
   * Of the events of messages, only those whose topic matches this topic filter, which may not be shared. Messages of other topics cost
   * nothing. Default `#`, which does not include topics that begin with `$`.
   */
  readonly filter?: string | undefined;
  /**
   * Only the events that satisfy this condition: as after WHERE in a rule, with the columns and the built-in functions of rules, at most 8,192
   * bytes. Default: all.
   */
  readonly where?: string | undefined;
  /** Names of events of the catalogue. Default `message.publish`: each published message, once. */
  readonly names?: readonly EventName[] | undefined;
  /** Only this many bytes at the beginning of a payload are in a row, at most 65,536. Default 4,096; 0: none. */
  readonly maxPayloadBytes?: Size | undefined;
  /**
   * Neither rows nor the condition have payloads or messages of errors, for people who may not see values of messages; errors still have
   * their `code`. The events `rule.inspected` and `streams.logged` are refused. Default false.
   */
  readonly hidesPayloads?: boolean | undefined;
}

/** Dependencies of tails on the broker. */
interface TailSources {
  readonly node: string;
  readonly events: Events;
  readonly nullIsNull: boolean;
  /** Pass the messages of topics to a watcher. @returns a function that removes the watcher */
  watch(filter: string, watcher: Watcher): () => void;
}

/** The open tails of a broker. Their code and that of conditions are imported by the first one. */
export class Tails {
  readonly #services: Pick<BaseServices, 'clock' | 'wheel'> & { readonly time: TimeReading };
  readonly #sources: TailSources;
  #count = 0;
  readonly #conditionTime: ConditionTime = { tails: 0, secondMs: -Infinity, spentMs: 0, processorMs };

  constructor(services: Pick<BaseServices, 'clock' | 'wheel'> & { readonly time: TimeReading }, sources: TailSources) {
    this.#services = services;
    this.#sources = sources;
  }

  /** See `Monitor.tail`. */
  async open(options: TailOptions = {}): Promise<Tail> {
    const { filter, where, names, ...payloads } = readOptions(OPTIONS, options, 'tail');
    const shown = payloads.hidesPayloads ? names.find((name) => EVENTS[name].showsValues) : undefined;
    if (shown !== undefined) {
      const expected = 'events without values of messages, because payloads are hidden';
      throw new InvalidInput('OPTION_INVALID', 'names', expected, shown);
    }
    const { clock } = this.#services;
    const { node, nullIsNull } = this.#sources;
    const now = () => clock.now();
    let isStopped = false;
    const ignoreStop = this.#on('broker.stopped', () => {
      isStopped = true;
    });
    const [{ Tail }, { tailedEvents }, condition] = await Promise.all([
      import('./tail.ts'),
      import('./tail-columns.ts'),
      where === undefined ? undefined : compiled(where, { now, nullIsNull })
    ]).finally(ignoreStop);
    if (this.#count >= MAX_TAILS)
      throw new StateError('TOO_MANY_TAILS', `there are ${MAX_TAILS} tails already; close one of them first`);
    const ends: (() => void)[] = [];
    const selection = { condition, conditionTime: this.#conditionTime, ...payloads };
    const tail = new Tail(this.#services, { node, now }, selection, () => {
      this.#count--;
      for (const end of ends) end();
    });
    this.#count++;
    for (const name of new Set(names))
      ends.push(
        name === 'message.publish' ? this.#watch(tail, filter) : this.#listen(tail, name, tailedEvents(name), filter)
      );
    ends.push(this.#on('broker.stopped', () => tail.close()));
    if (isStopped) tail.close();
    return tail;
  }

  /** Pass the messages of a topic filter to a tail: those of other topics stay on the fast path. */
  #watch(tail: Tail, filter: string): () => void {
    return this.#sources.watch(filter, {
      order: BEFORE_RULES,
      watched: (message) => tail.seeMessage(message)
    });
  }

  #listen(tail: Tail, name: EventName, rows: readonly TailedEvent[], filter: string): () => void {
    const see = (value: BrokerEvents[EventName]) => {
      for (const row of rows) if (row.accepts(value)) tail.see(row, value);
    };
    return this.#on(name, see, name.startsWith('message.') ? filter : undefined);
  }

  #on<E extends EventName>(name: E, listener: (value: BrokerEvents[E]) => void, filter?: string): () => void {
    const { events } = this.#sources;
    events.on(name, listener, filter);
    return () => events.off(name, listener);
  }
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

async function compiled(where: string, facts: { now(): number; readonly nullIsNull: boolean }) {
  const { compileCondition } = await import('./condition.ts');
  return compileCondition(where, facts);
}

function checkFilter(filter: unknown, name: string): string {
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a string';
  if (fault !== undefined || parseSharedFilter(filter as string) !== undefined)
    throw new InvalidInput('TOPIC_FILTER_INVALID', name, 'a topic filter that is not shared', filter, fault);
  return filter as string;
}

function checkNames(names: unknown, field: string): readonly EventName[] {
  if (!Array.isArray(names) || names.length === 0)
    throw new InvalidInput('OPTION_INVALID', field, 'a list of names of events', names);
  for (const name of names)
    if (!EVENT_NAMES.includes(name)) throw unknownName('EVENT_UNKNOWN', 'event', name, EVENT_NAMES);
  return names;
}
