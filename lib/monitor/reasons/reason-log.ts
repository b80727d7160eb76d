// The log keeps one copy of each record, and lists of records by client (receiver or publisher), topic and rule. A
// record that is in no list, and the oldest ones when `maxBytes` is exceeded, are removed. A flood of one
// client therefore displaces its own records only. Equal records are one with a count: it is looked for among the
// records of one key, and moves to the end of the order when the log is read. A repeated drop allocates nothing.
//
// The packet path drops up to a million messages a second, and has about 20 ns for each record. So the route of a topic
// without subscribers counts the drops of its last publisher, which are added when the log is read, and the outlet of a
// session passes the record of its last drop, which is usually equal. A search takes 75 ns, and a new record 1.2 us, because
// it displaces others, or 2 to 4 us if its client, publisher and topic displace others as well: after `MAX_SEARCHES` in
// a tenth of a second, the drops of a client that equal no known record are summarised in one, without topic.

import type { TimeReading } from '../../base/time-reading.ts';
import type { UnsubscribedRoute } from '../../events/announcer.ts';
import type { DropReason } from '../../events/reasons.ts';
import type { QoS } from '../../packets/types.ts';
import { cut } from '../cut-text.ts';
import { Chain } from './chain.ts';
import { free, KeptRecord, type ReasonSubject } from './kept-record.ts';
import { type Key, type KeyLimits, KeyTable } from './key-table.ts';
import { RECORDED, type RecordedCode } from './recorded.ts';
import { RepeatedDrop } from './repeated-drop.ts';

/** Records that are kept: for each client (or address), topic and rule, and for how many of them. */
const CLIENT_LIMITS = { keys: 10_000, records: 32, messages: 24 };
/** Of clients about which nothing is known but that their CONNECT was refused: anyone can invent any number of client ids. */
const NEWCOMER_LIMITS = { keys: 2_000, records: 4 };
const TOPIC_LIMITS = { keys: 10_000, records: 8 };
const RULE_LIMITS = { keys: 10_000, records: 16, messages: 12 };

/** Maximum number of routes that count drops which are not in the log yet, and of the characters of their names, which are not cut. */
const MAX_ROUTES = 4_096;
const MAX_ROUTE_CHARACTERS = 1_048_576;
/** Maximum time for which they count: the number of its milliseconds is less than 2^31. */
const MAX_ROUTES_MS = 86_400_000;
/** Maximum number of drops whose record is searched for in `SEARCH_MS`. */
const MAX_SEARCHES = 200;
const SEARCH_MS = 100;

/** The names of what records are about. */
export interface ReasonKeys {
  readonly client?: string | undefined;
  readonly topic?: string | undefined;
  readonly rule?: string | undefined;
  /** IP address of clients that could not connect. */
  readonly address?: string | undefined;
}

/** A time in which events were not recorded, in milliseconds since 1970. */
interface LeftOut {
  readonly since: number;
  readonly until: number;
}

/** The lists, which are created for the first record. */
interface Tables {
  readonly client: KeyTable;
  readonly newcomer: KeyTable;
  readonly topic: KeyTable;
  readonly rule: KeyTable;
  readonly address: KeyTable;
}

/** The last reasons for which messages did not arrive, and the last events of clients and rules, in memory. */
export class ReasonLog {
  /** Maximum memory, in bytes; 0: nothing is recorded. */
  readonly maxBytes: number;
  readonly #time: TimeReading;
  #tables: Tables | undefined = undefined;
  /** All records, in the order of their numbers: that of their times after `#putInOrder`. */
  readonly #order = new Chain<KeptRecord>();
  /** A record that is used again. */
  #spare: KeptRecord | undefined = undefined;
  /** Number of the latest record. */
  #number = 0;
  #bytes = 0;
  #size = 0;
  #drops = 0;
  /** Searches since this monotonic time. */
  #searches = 0;
  #searchesSinceMs = -Infinity;
  /** The routes with drops that are not in the log yet. */
  readonly #routes: UnsubscribedRoute[] = [];
  #routeCharacters = 0;
  /** Wall-clock time since which they count. */
  #routesSince = 0;
  /** Wall-clock time of the last drop that was summarised. */
  #summarisedAt = -Infinity;
  /** Wall-clock times of the first and the last loss of a retained message that was left out. */
  #leftOut: LeftOut | undefined = undefined;

  constructor(maxBytes: number, time: TimeReading) {
    this.maxBytes = maxBytes;
    this.#time = time;
  }

  /** Number of records. */
  get size(): number {
    this.#takeRepeated();
    return this.#size;
  }

  /** Number of records that are drops. */
  get drops(): number {
    this.#takeRepeated();
    return this.#drops;
  }

  /** Estimated memory, in bytes. */
  get bytes(): number {
    this.#takeRepeated();
    return this.#bytes;
  }

  /**
   * Record a drop.
   * @param receiver client id; undefined: no receiver gets the message
   * @param last the record of the last drop of this topic or for this receiver: it is compared first
   * @returns the record of the drop
   */
  drop(
    topic: string,
    qos: QoS,
    publisher: string,
    code: RecordedCode,
    receiver: string | undefined,
    count: number,
    detail?: string,
    last?: KeptRecord
  ): KeptRecord | undefined {
    if (last?.equals(code, topic, qos, publisher, receiver, undefined, detail) === true)
      return this.#repeated(last, count);
    if (last !== undefined && summarises(last, code, receiver) && this.#isFlooded())
      return this.#summarised(last, count);
    if (this.maxBytes === 0) return undefined;
    topic = cut(topic);
    publisher = cut(publisher);
    if (receiver !== undefined) receiver = cut(receiver);
    if (detail !== undefined) detail = cut(detail);
    const known = this.#known(last, code, topic, qos, publisher, receiver, detail);
    if (known !== undefined) return this.#repeated(known, count);
    const isSummarised = (receiver !== undefined || publisher !== '') && this.#isFlooded();
    if (!isSummarised) return this.#add(code, topic, qos, publisher, receiver, undefined, detail, count);
    return this.#summarise(code, receiver === undefined ? publisher : undefined, receiver, count, last);
  }

  /** Record messages that were dropped because there were no subscribers. */
  dropUnsubscribed(route: UnsubscribedRoute, qos: QoS, publisher: string, count: number): void {
    if (this.maxBytes === 0) return;
    const { wallMs } = this.#time;
    if (this.#routes.length === 0) this.#routesSince = wallMs;
    else if (Math.abs(wallMs - this.#routesSince) > MAX_ROUTES_MS) {
      this.#takeRepeated();
      this.#routesSince = wallMs;
    }
    const after = (wallMs - this.#routesSince) | 0;
    const repeated = ((route.repeatedDrop as RepeatedDrop | undefined) ??= new RepeatedDrop());
    if (repeated.count > 0) {
      if (repeated.publisher === publisher && repeated.qos === qos) repeated.add(count, after);
      else {
        const last = route.lastDrop as KeptRecord | undefined;
        route.lastDrop = this.drop(route.topic, qos, publisher, 'no_subscribers', undefined, count, undefined, last);
      }
      return;
    }
    this.#number++;
    repeated.begin(publisher, qos, count, wallMs, after, this.#number);
    const routes = this.#routes.push(route);
    this.#routeCharacters += route.topic.length + publisher.length;
    if (routes === MAX_ROUTES || this.#routeCharacters > MAX_ROUTE_CHARACTERS)
      this.#takeRepeated(routes - MAX_SEARCHES);
  }

  /** Record something else. */
  add(
    code: RecordedCode,
    { clientId, publisher, topic, rule, qos = 0, address, detail, count = 1, since }: ReasonSubject
  ): void {
    if (this.maxBytes === 0) return;
    this.#time.read(); // most events come from timers, closed sockets and the app, before a packet is read
    const short = (text: string | undefined) => (text === undefined ? undefined : cut(text));
    const rest = [short(clientId), short(rule), short(detail)] as const;
    this.#add(code, short(topic), qos, short(publisher), ...rest, count, address, this.#time.wallMs, since);
  }

  /** Note that the loss of a retained message is not recorded, because there are very many. */
  leaveOut(): void {
    const { wallMs } = this.#time;
    this.#leftOut = { since: this.#leftOut?.since ?? wallMs, until: wallMs };
  }

  /** The time in which losses of retained messages were left out; undefined: none was. */
  get leftOut(): LeftOut | undefined {
    return this.#leftOut;
  }

  /** Note that a topic has a retained message, after it had none. Costs a look-up if nothing was lost. */
  retainedAgain(topic: string): void {
    const records = this.#tables?.topic.records(cut(topic)) ?? [];
    const loss = records.findLast(({ code }) => code === 'retained_deleted' || code === 'retained_expired');
    if (loss === undefined || loss.endedAt !== Infinity) return;
    this.#time.read();
    loss.end(this.#time.wallMs);
  }

  /** Read the records of keys, or all, from the latest one. A record of several keys is read once. */
  *records(keys: ReasonKeys = {}): IterableIterator<KeptRecord> {
    this.#takeRepeated();
    this.#putInOrder();
    if (KINDS.every((kind) => keys[kind] === undefined)) {
      for (let record = this.#order.newest; record !== undefined; record = record.older) yield record;
      return;
    }
    const found = new Set<KeptRecord>();
    for (const kind of KINDS) {
      const name = keys[kind];
      if (name === undefined) continue;
      for (const record of this.#tables?.[kind].records(cut(name)) ?? []) found.add(record);
    }
    yield* [...found].sort((a, b) => b.number - a.number);
  }

  /** Time of the latest record about one of these keys that is no longer kept; -Infinity if all are. */
  lostAt(keys: ReasonKeys): number {
    this.#takeRepeated();
    let lostAt = -Infinity;
    for (const kind of KINDS) {
      const name = keys[kind];
      if (name === undefined || this.#tables === undefined) continue;
      lostAt = Math.max(lostAt, this.#tables[kind].lostAt(cut(name)));
    }
    if (keys.topic === undefined) return lostAt;
    // summaries are found by their client only
    return Math.max(lostAt, keys.client === undefined ? this.#summarisedAt : -Infinity);
  }

  /** Remove the records that are drops. */
  clearDrops(): void {
    for (const record of [...this.records()]) if (record.row.drop !== undefined) this.#remove(record);
  }

  /** The given record, or the latest one, if it differs from a new one only in its time. */
  #known(
    last: KeptRecord | undefined,
    code: RecordedCode,
    topic: string | undefined,
    qos: QoS,
    publisher: string | undefined,
    clientId: string | undefined,
    detail: string | undefined
  ): KeptRecord | undefined {
    if (last?.equals(code, topic, qos, publisher, clientId, undefined, detail) === true) return last;
    const { newest } = this.#order;
    return newest?.equals(code, topic, qos, publisher, clientId, undefined, detail) === true ? newest : undefined;
  }

  /** Add the drops that are counted at routes. @param summarised number of routes, the first ones, whose drops are summarised */
  #takeRepeated(summarised = 0): void {
    if (this.#routes.length === 0) return;
    // by the time of the last drop, so that a list of a key keeps the latest ones
    const lastOf = ({ repeatedDrop }: UnsubscribedRoute) => (repeatedDrop as RepeatedDrop).lastAfter;
    const routes = this.#routes.splice(0).sort((a, b) => lastOf(a) - lastOf(b));
    this.#routeCharacters = 0;
    const routesSince = this.#routesSince;
    for (let at = 0; at < routes.length; at++) {
      const { topic, repeatedDrop } = routes[at];
      const { count, publisher, qos, since, lastAfter, number } = repeatedDrop as RepeatedDrop;
      const lastAt = routesSince + lastAfter;
      (repeatedDrop as RepeatedDrop).taken();
      if (at < summarised && publisher !== '') this.#summarise('no_subscribers', cut(publisher), undefined, count);
      else {
        const rest = [undefined, undefined, undefined, count, undefined] as const;
        this.#add('no_subscribers', cut(topic), qos, cut(publisher), ...rest, lastAt, since, number);
      }
    }
  }

  /** Record drops of several topics. */
  #summarise(
    code: RecordedCode,
    publisher: string | undefined,
    receiver: string | undefined,
    count: number,
    last?: KeptRecord
  ): KeptRecord | undefined {
    const summary = this.#known(last, code, undefined, 0, publisher, receiver, undefined);
    if (summary !== undefined) return this.#summarised(summary, count);
    this.#summarisedAt = this.#time.wallMs;
    return this.#add(code, undefined, 0, publisher, receiver, undefined, undefined, count);
  }

  #summarised(record: KeptRecord, count: number): KeptRecord {
    this.#summarisedAt = this.#time.wallMs;
    return this.#repeated(record, count);
  }

  #repeated(record: KeptRecord, count: number, at = this.#time.wallMs): KeptRecord {
    record.repeat(count, at);
    return record;
  }

  /** Put the records in the order of their times. Those that are no longer in the order of their numbers get new ones. */
  #putInOrder(): void {
    const all: KeptRecord[] = [];
    let isInOrder = true;
    for (let record = this.#order.oldest; record !== undefined; record = record.newer) {
      all.push(record);
      if (record.isRepeated) isInOrder = false;
    }
    if (isInOrder) return;
    this.#order.clear();
    let last = 0;
    for (const record of all.sort((a, b) => a.at - b.at || a.number - b.number)) {
      this.#order.add(record);
      if (record.number <= last) record.renumber(++this.#number);
      else record.renumber(record.number);
      last = record.number;
    }
  }

  /** Note a search, and tell whether there were too many. */
  #isFlooded(): boolean {
    const { nowMs } = this.#time;
    if (nowMs - this.#searchesSinceMs >= SEARCH_MS) {
      this.#searchesSinceMs = nowMs;
      this.#searches = 0;
    }
    return ++this.#searches > MAX_SEARCHES;
  }

  #add(
    code: RecordedCode,
    topic: string | undefined,
    qos: QoS,
    publisher: string | undefined,
    clientId: string | undefined,
    rule: string | undefined,
    detail: string | undefined,
    count: number,
    address: string | undefined = undefined,
    at = this.#time.wallMs,
    since = at,
    number = ++this.#number
  ): KeptRecord | undefined {
    const row = RECORDED[code];
    const tables = (this.#tables ??= this.#makeTables());
    const indexed = row.isFilter === true ? undefined : topic;
    const isNewcomer = row.isRefusedConnect === true && clientId !== undefined && !tables.client.has(clientId);
    const clients = isNewcomer ? tables.newcomer : tables.client;
    const records = comparedWith(tables, clients, clientId, rule, indexed, publisher, address)?.records;
    if (records === undefined) return undefined;
    // events of clients and rules are one only if they are in a row, so that a history keeps their order
    const oldest = row.drop === undefined && row.isOfMessage !== true ? records.length - 1 : 0;
    for (let i = records.length - 1; i >= oldest && i >= 0; i--)
      if (records[i].equals(code, topic, qos, publisher, clientId, rule, detail))
        return this.#repeated(records[i], count, at);
    const record = this.#spare ?? new KeptRecord();
    this.#spare = undefined;
    record.fill(code, row, topic, qos, publisher, clientId, rule, detail, address);
    record.begin(number, count, since, at, number < this.#number);
    this.#order.add(record);
    this.#size++;
    if (isDrop(record)) this.#drops++;
    this.#bytes += record.bytes;
    clients.add(clientId, record);
    tables.client.add(publisher, record);
    tables.topic.add(indexed, record);
    tables.rule.add(rule, record);
    tables.address.add(address, record);
    while (this.#bytes > this.maxBytes && this.#order.oldest !== undefined) this.#remove(this.#order.oldest);
    return record;
  }

  /** Remove a record from all lists. */
  #remove(record: KeptRecord): void {
    const { client, newcomer, topic, rule, address } = this.#tables as Tables;
    client.delete(record.clientId, record);
    newcomer.delete(record.clientId, record);
    client.delete(record.publisher, record);
    topic.delete(record.topic, record);
    rule.delete(record.rule, record);
    address.delete(record.address, record);
    this.#free(record);
  }

  #released(record: KeptRecord): void {
    record.hold(-1);
    if (record.holders === 0) this.#free(record);
  }

  #free(record: KeptRecord): void {
    this.#order.remove(record);
    this.#size--;
    if (isDrop(record)) this.#drops--;
    this.#bytes -= record.bytes;
    free(record);
    this.#spare = record;
  }

  #makeTables(): Tables {
    const released = (record: KeptRecord) => this.#released(record);
    const grown = (bytes: number) => {
      this.#bytes += bytes;
    };
    const table = (limits: KeyLimits, earlier?: KeyTable) => new KeyTable(limits, released, grown, earlier);
    const newcomer = table(NEWCOMER_LIMITS);
    return {
      client: table(CLIENT_LIMITS, newcomer),
      newcomer,
      topic: table(TOPIC_LIMITS),
      rule: table(RULE_LIMITS),
      address: table(CLIENT_LIMITS)
    };
  }
}

const KINDS = ['client', 'topic', 'rule', 'address'] as const;

/** Tell whether a record summarises drops of a receiver. @param receiver undefined: none, so false */
function summarises(record: KeptRecord, code: RecordedCode, receiver: string | undefined): boolean {
  return (
    record.topic === undefined &&
    receiver !== undefined &&
    record.holders > 0 &&
    record.code === code &&
    record.clientId === receiver
  );
}

/** The key whose records are compared with a new one: of the receiver, or else the rule, topic, publisher or address. */
function comparedWith(
  { client, topic, rule, address: addresses }: Tables,
  clients: KeyTable,
  clientId: string | undefined,
  ruleId: string | undefined,
  indexed: string | undefined,
  publisher: string | undefined,
  address: string | undefined
): Key | undefined {
  if (clientId !== undefined) return clients.use(clientId);
  if (ruleId !== undefined) return rule.use(ruleId);
  if (indexed !== undefined) return topic.use(indexed);
  if (publisher) return client.use(publisher);
  return address === undefined ? undefined : addresses.use(address);
}

/** A record of a drop. */
export type DropOfLog = KeptRecord & { readonly row: { readonly drop: DropReason } };

/** Tell whether a record is a drop. */
export function isDrop(record: KeptRecord): record is DropOfLog {
  return record.row.drop !== undefined;
}
