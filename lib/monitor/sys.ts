// A message under `$SYS` is made only if its topic has subscribers, except for the retained ones; payloads are
// functions that are called only then. Topics keep the documented names, which differ from those of the counters in a
// few places (`WITHOUT_DIRECTION`). Warnings are limited by kind and subject. A client id can contain wildcards or be
// longer than a topic may be; a notice about it is encoded, or left out.

import type { Clock } from '../base/clock.ts';
import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import { COUNTERS, type CounterName, GAUGES, type Metrics, PLAIN_GAUGES } from '../events/metrics.ts';
import type { QoS } from '../packets/types.ts';
import type { AlarmSeverity } from '../records/alarm.ts';
import type { ClientInfo } from '../records/client.ts';
import { checkTopicName } from '../topics/topic.ts';

/** The name and description of this broker, for example in `$SYS/brokers/<node>/sysdescr`. */
export const SYSTEM_DESCRIPTION = 'EmberMQ Broker';

/** Counters of packets that are sent in one direction only, under `metrics/packets/<packet>`. AUTH is the sum of both directions. */
const WITHOUT_DIRECTION: ReadonlyMap<string, readonly CounterName[]> = new Map([
  ['packets.connect', ['packets.connect.received']],
  ['packets.connack', ['packets.connack.sent']],
  ['packets.subscribe', ['packets.subscribe.received']],
  ['packets.suback', ['packets.suback.sent']],
  ['packets.unsubscribe', ['packets.unsubscribe.received']],
  ['packets.unsuback', ['packets.unsuback.sent']],
  ['packets.pingreq', ['packets.pingreq.received']],
  ['packets.pingresp', ['packets.pingresp.sent']],
  ['packets.auth', ['packets.auth.received', 'packets.auth.sent']]
]);

/** Minimum time between two warnings of the same kind about the same subject. */
const WARNING_PAUSE_MS = 2000;

/** An alarm in its published form. */
interface AlarmNotice {
  /** For example `cpu_high_watermark`. */
  readonly id: string;
  /** Absent when the alarm is cleared. */
  readonly desc?:
    | string
    | {
        readonly severity: AlarmSeverity;
        readonly title: string;
        readonly summary: string;
        /** Wall-clock milliseconds. */
        readonly timestamp: number;
      };
}

/** Topics under `sysmon/`. */
export type WarningKind = 'long_gc' | 'long_schedule' | 'large_heap' | 'busy_port' | 'busy_dist_port';

/** The settings of `SysTopics`. */
export interface SysSettings {
  /** Name of this node. */
  readonly node: string;
  /** Version of the broker. */
  readonly version: string;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly metrics: Metrics;
  /** The options of the broker. Intervals are in milliseconds; 0 disables the topics that they control. */
  readonly settings: {
    readonly sysInterval: number;
    readonly sysHeartbeat: number;
    readonly sysDottedTopics: boolean;
  };
  /** Publish a message of the broker. */
  readonly publish: (topic: string, payload: string, options: { readonly qos: QoS; readonly retain: boolean }) => void;
  /** Tell whether a topic name has subscribers. */
  readonly hasSubscribers: (topic: string) => boolean;
  /** Tell whether any topic filter begins with `$SYS`. A cheap test that is made before `hasSubscribers`. */
  readonly isHeard?: () => boolean;
  /** The names of the running nodes. */
  readonly nodes: () => readonly string[];
  /** Monotonic milliseconds at which the broker started. */
  readonly startedAtMs: number;
}

/** A topic and its current payload. */
interface SystemValue {
  readonly topic: string;
  readonly read: () => string;
}

/**
 * Publishes the topics under `$SYS/brokers`: counters and gauges at intervals; notices about clients, alarms and warnings immediately.
 *
 * The node list, the version and the description are retained. They are published at the start, so that new subscribers receive them
 * immediately, and at intervals if they have changed or have subscribers. All other messages are published only if they have subscribers.
 * The statistics have the documented names with slashes instead of dots (`stats/connections/count`, `metrics/packets/connect`). With
 * `sysDottedTopics` the later names are published as well (`stats/connections.count`, `metrics/packets/connect/received`).
 */
export class SysTopics {
  readonly #given: SysSettings;
  readonly #prefix: string;
  readonly #heartbeat: readonly SystemValue[];
  /** Undefined until there is a subscriber. */
  #statistics: readonly SystemValue[] | undefined = undefined;
  readonly #retained: readonly SystemValue[];
  /** The last payload of each retained topic. */
  readonly #published = new Map<string, string>();
  readonly #beat: Period;
  readonly #tick: Period;
  readonly #warnedAtMs = new Map<string, number>();

  constructor(given: SysSettings) {
    const { node, version, clock, wheel, settings, nodes, startedAtMs } = given;
    this.#given = given;
    this.#prefix = `$SYS/brokers/${node}/`;
    this.#heartbeat = [
      { topic: `${this.#prefix}uptime`, read: () => uptimeText(clock.monotonic() - startedAtMs) },
      { topic: `${this.#prefix}datetime`, read: () => dateTimeText(clock.now()) }
    ];
    this.#retained = [
      { topic: '$SYS/brokers', read: () => nodes().join(',') },
      { topic: `${this.#prefix}version`, read: () => version },
      { topic: `${this.#prefix}sysdescr`, read: () => SYSTEM_DESCRIPTION }
    ];
    this.#beat = new Period(
      wheel,
      () => settings.sysHeartbeat,
      () => this.#publish(this.#heartbeat)
    );
    const tick = () => {
      this.#publishRetained();
      if (!this.#isHeard()) return;
      this.#statistics ??= statistics(this.#prefix, given.metrics, settings.sysDottedTopics);
      this.#publish(this.#statistics);
    };
    this.#tick = new Period(wheel, () => settings.sysInterval, tick);
  }

  /** Publish the retained topics and start the intervals. The first statistics are published one interval later. */
  start(): void {
    this.#published.clear();
    if (this.#given.settings.sysInterval > 0) this.#publishRetained();
    const nowMs = this.#given.clock.monotonic();
    this.#beat.start(nowMs);
    this.#tick.start(nowMs);
  }

  stop(): void {
    this.#beat.stop();
    this.#tick.stop();
  }

  /** Start the intervals again with changed options. */
  configured(): void {
    this.stop();
    this.#statistics = undefined;
    const nowMs = this.#given.clock.monotonic();
    this.#beat.start(nowMs);
    this.#tick.start(nowMs);
  }

  /**
   * Publish a notice about a client.
   * @param suffix the topic below that of the node, with `{clientid}`
   * @param payload called if the topic has subscribers
   */
  aboutClient(suffix: string, client: ClientInfo, payload: () => string, qos: QoS): void {
    if (!this.#isHeard()) return;
    // Not specified: wildcard characters, which a client id may contain, are percent-encoded in the topic name.
    const id = client.clientId.replace(/[+#]/g, encodeURIComponent);
    this.#publishNow(
      suffix.replace('{clientid}', () => id),
      payload,
      qos
    );
  }

  /** Publish that an alarm has been raised or cleared. */
  alarm(change: 'alert' | 'clear', alarm: AlarmNotice): void {
    const { id, desc } = alarm;
    this.#publishNow(`alarms/${change}`, () => JSON.stringify(change === 'alert' ? { id, desc } : { id }));
  }

  /** Publish a warning about the system, at most once in 2 s for each kind and `subject`. */
  warn(kind: WarningKind, subject: string, text: string): void {
    const nowMs = this.#given.clock.monotonic();
    for (const [key, atMs] of this.#warnedAtMs) if (nowMs - atMs >= WARNING_PAUSE_MS) this.#warnedAtMs.delete(key);
    const key = `${kind} ${subject}`;
    if (this.#warnedAtMs.has(key)) return;
    this.#warnedAtMs.set(key, nowMs);
    this.#publishNow(`sysmon/${kind}`, () => `${kind} warning: ${subject} ${text}`);
  }

  #isHeard(): boolean {
    return this.#given.isHeard === undefined || this.#given.isHeard();
  }

  #publish(values: readonly SystemValue[]): void {
    if (!this.#isHeard()) return;
    const { hasSubscribers, publish } = this.#given;
    for (const { topic, read } of values) if (hasSubscribers(topic)) publish(topic, read(), { qos: 0, retain: false });
  }

  #publishRetained(): void {
    const { hasSubscribers, publish } = this.#given;
    const isHeard = this.#isHeard();
    for (const { topic, read } of this.#retained) {
      const text = read();
      if (this.#published.get(topic) === text && !(isHeard && hasSubscribers(topic))) continue;
      this.#published.set(topic, text);
      publish(topic, text, { qos: 0, retain: true });
    }
  }

  #publishNow(suffix: string, text: () => string, qos: QoS = 0): void {
    if (!this.#isHeard()) return;
    const topic = this.#prefix + suffix;
    // a client id may be as long as a topic
    if (checkTopicName(topic) !== undefined || !this.#given.hasSubscribers(topic)) return;
    this.#given.publish(topic, text(), { qos, retain: false });
  }
}

/** A timer that rings at a fixed interval without drift. With an interval of 0 it never rings. */
class Period extends BaseTimer {
  readonly #wheel: TimingWheel;
  readonly #periodMs: () => number;
  readonly #run: () => void;
  #nextMs = 0;

  constructor(wheel: TimingWheel, periodMs: () => number, run: () => void) {
    super();
    this.#wheel = wheel;
    this.#periodMs = periodMs;
    this.#run = run;
  }

  start(nowMs: number): void {
    const periodMs = this.#periodMs();
    if (periodMs === 0) return;
    this.#nextMs = nowMs + periodMs;
    this.#wheel.armAt(this, this.#nextMs);
  }

  stop(): void {
    this.#wheel.disarm(this);
  }

  ring(nowMs: number): void {
    // Intervals that were missed during a long standstill are skipped.
    const fromMs = nowMs - this.#nextMs < this.#periodMs() ? this.#nextMs : nowMs;
    this.start(fromMs);
    this.#run();
  }
}

function statistics(prefix: string, metrics: Metrics, isDotted: boolean): SystemValue[] {
  const values: SystemValue[] = [];
  const add = (suffix: string, read: () => number) => {
    values.push({ topic: prefix + suffix, read: () => String(read()) });
  };
  for (const name of GAUGES) {
    for (const dot of isDotted ? ['/', '.'] : ['/']) {
      const spelt = name.replaceAll('.', dot);
      add(`stats/${spelt}${dot}count`, () => metrics.gauge(name));
      add(`stats/${spelt}${dot}max`, () => metrics.note(name, metrics.gauge(name)));
    }
  }
  const oneWay = new Set<string>([...WITHOUT_DIRECTION.values()].flat());
  for (const [name, counters] of WITHOUT_DIRECTION) {
    const indexes = counters.map((counter) => COUNTERS.indexOf(counter));
    add(`metrics/${slashes(name)}`, () => indexes.reduce((sum, at) => sum + metrics.counts[at], 0));
  }
  COUNTERS.forEach((name, at) => {
    if (isDotted || !oneWay.has(name)) add(`metrics/${slashes(name)}`, () => metrics.counts[at]);
  });
  for (const name of PLAIN_GAUGES) add(`metrics/${slashes(name)}`, () => metrics.gauge(name));
  return values;
}

function slashes(name: string): string {
  return name.replaceAll('.', '/');
}

/**
 * A duration in words, starting with the largest unit that is not zero: `5 seconds`, `1 hours, 0 minutes, 2 seconds`. Units are always in
 * the plural, as documented.
 */
export function uptimeText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), 'days'],
    [Math.floor(seconds / 3600) % 24, 'hours'],
    [Math.floor(seconds / 60) % 60, 'minutes'],
    [seconds % 60, 'seconds']
  ];
  const from = units.findIndex(([amount], at) => amount > 0 || at === 3);
  return units
    .slice(from)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(', ');
}

/** A point in time as `YYYY-MM-DD HH:mm:ss`, local time, as documented. */
export function dateTimeText(wallMs: number): string {
  const date = new Date(wallMs);
  const two = (number: number) => String(number).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
