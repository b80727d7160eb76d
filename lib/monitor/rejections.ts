import { ConnectionRefused } from '../base/errors.ts';
import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { Events } from '../events/events.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Alarms } from './alarms.ts';
import { cut } from './cut-text.ts';
import type { ReasonLog } from './reasons/reason-log.ts';

/** Number of rejections within a minute from which the alarm names a client. */
const MANY = 5;
const MINUTE_MS = 60_000;
/** Time without a client that was rejected so often, after which the alarm ends. */
const CALM_MS = 5 * MINUTE_MS;
/** Maximum number of clients whose rejections are counted: those that were rejected last. */
const MAX_CLIENTS = 1_000;
/** Maximum number of clients that the alarm names. */
const MAX_NAMED = 5;
const ALARM = 'client_rejected';

/** The last rejections of a client. */
interface Rejected {
  /** Monotonic times of the last `MANY` rejections, in a ring. */
  readonly times: Float64Array;
  /** Number of rejections. */
  count: number;
  /** Time of the last rejection for which the last `MANY` came within a minute. */
  manyAtMs: number;
  reason: string;
  why: string;
}

/** A client, or the peer of a listener, that was rejected. */
interface RejectedPeer {
  readonly client: ClientInfo | undefined;
  readonly address: string | undefined;
  /** A reason of `client.disconnected`, or of the listener. */
  readonly reason: string;
  /** A reason code of MQTT 5.0; 0: the connection was refused below MQTT. */
  readonly reasonCode: number;
  readonly why: string;
}

/**
 * Reports the clients that the broker rejects: it refuses them, or closes their connection because of what they send. An alarm names those
 * that are rejected repeatedly. Its cost for each rejection, and its memory, do not depend on how many there are.
 */
export class Rejections extends BaseTimer {
  readonly #wheel: TimingWheel;
  readonly #alarms: Alarms;
  readonly #events: Events;
  readonly #monotonic: () => number;
  readonly #reasons: ReasonLog | undefined;
  /** By client id, or address if there is none; the most recently rejected one is last. */
  readonly #rejected = new Map<string, Rejected>();
  /** Last time at which a client had been rejected many times. */
  #manyAtMs = -Infinity;
  #raisedAtMs = -Infinity;

  constructor(wheel: TimingWheel, alarms: Alarms, events: Events, monotonic: () => number, reasons?: ReasonLog) {
    super();
    this.#wheel = wheel;
    this.#alarms = alarms;
    this.#events = events;
    this.#monotonic = monotonic;
    this.#reasons = reasons;
  }

  /** Report the peer of a listener, if this is an error about it. */
  noteError(error: unknown): void {
    if (!(error instanceof ConnectionRefused)) return;
    const { address, reason, message: why } = error;
    this.#reasons?.add('connect_refused', { address, detail: `${why} (from ${address ?? 'an unknown address'})` });
    this.add({ client: undefined, address, reason, reasonCode: 0, why });
  }

  add(peer: RejectedPeer): void {
    const { client, reason, why } = peer;
    const address = peer.address ?? client?.transportInfo.remoteAddress;
    if (this.#events.heard['client.rejected'])
      this.#events.emit('client.rejected', { client, address, reason, reasonCode: peer.reasonCode, why });
    const name = cut(
      client?.clientId ? `client "${client.clientId}"` : `a client at ${address ?? 'an unknown address'}`
    );
    const nowMs = this.#monotonic();
    const known = this.#rejected.get(name) ?? begin();
    this.#rejected.delete(name); // and add it at the end
    this.#rejected.set(name, known);
    if (this.#rejected.size > MAX_CLIENTS) this.#rejected.delete(this.#rejected.keys().next().value as string);
    known.reason = reason;
    known.why = cut(why);
    const oldest = known.count - MANY + 1 < 0 ? -Infinity : known.times[(known.count + 1) % MANY];
    known.times[known.count++ % MANY] = nowMs;
    if (nowMs - oldest > MINUTE_MS) return;
    known.manyAtMs = nowMs;
    this.#many(nowMs);
  }

  /** Raise the alarm, because a client was rejected many times within a minute. */
  #many(nowMs: number): void {
    this.#manyAtMs = nowMs;
    if (this.#alarms.get(ALARM) === undefined) this.#wheel.arm(this, CALM_MS);
    // a new client is named within a minute: each change of the alarm is an event, a notice and a line of the log
    else if (nowMs - this.#raisedAtMs < MINUTE_MS) return;
    this.#raisedAtMs = nowMs;
    const named = [...this.#rejected].filter(([, { manyAtMs }]) => nowMs - manyAtMs <= CALM_MS).reverse();
    const texts = named.slice(0, MAX_NAMED).map(([name, { reason, why }]) => `${name} (${reason}: ${why})`);
    const more = named.length > MAX_NAMED ? ` and ${named.length - MAX_NAMED} more` : '';
    const summary = `rejected ${MANY} times within a minute or more often: ${texts.join(', ')}${more}. The log has a line for each client and reason.`;
    this.#alarms.raise({ id: ALARM, title: 'clients are rejected again and again', summary });
  }

  /** Clear the alarm, because the broker stops. */
  stop(): void {
    this.#wheel.disarm(this);
    this.#rejected.clear();
    this.#alarms.clear(ALARM);
  }

  ring(): void {
    const leftMs = this.#manyAtMs + CALM_MS - this.#monotonic();
    if (leftMs > 0) this.#wheel.arm(this, leftMs);
    else this.#alarms.clear(ALARM);
  }
}

function begin(): Rejected {
  return { times: new Float64Array(MANY), count: 0, manyAtMs: -Infinity, reason: '', why: '' };
}
