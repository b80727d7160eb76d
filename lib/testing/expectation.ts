// An expectation sees messages from the moment it is made, because a test that could also mean earlier ones would pass or
// fail by chance. The likely mistake is to make it after the cause. Its error says so if nothing came; to list earlier messages, the kit would have to
// observe all of them, and the broker of a test would not take the fast path that the broker of an app takes.

import { BrokerError, InvalidInput, truncated } from '../base/errors.ts';
import { checkNames, type Duration, durationMs } from '../base/fields.ts';
import type { Broker } from '../broker/broker.ts';
import type { Message } from '../packets/message.ts';
import type { Properties, QoS } from '../packets/types.ts';
import { checkTopicFilter, matches } from '../topics/topic.ts';
import type { VirtualClock } from './clock.ts';

/** A message that the broker accepted during an expectation. */
export interface SeenMessage {
  /** The topic name. */
  readonly topic: string;
  /** The payload, as a copy. */
  readonly payload: Buffer;
  /** The payload as UTF-8. */
  readonly text: string;
  /** The QoS of the PUBLISH. */
  readonly qos: QoS;
  /** The retain flag of the PUBLISH. */
  readonly retain: boolean;
  /** The MQTT 5.0 properties of the PUBLISH. */
  readonly properties: Properties;
  /** Client id of the publisher; empty for messages of the application and the broker. */
  readonly clientId: string;
  /** Virtual wall-clock time in milliseconds. */
  readonly at: number;
}

/** Options of `expectMessage` and `expectNoMessage`. */
export interface ExpectOptions {
  /** The virtual time to wait: milliseconds, or a string such as `5s`. Default: one second. */
  readonly within?: Duration;
  /** Accepts a message by returning true. Default: all messages that match the filter. */
  readonly where?: (message: SeenMessage) => boolean;
}

/** An expected message did not arrive, or an unexpected one did. `code` is MESSAGE_EXPECTED or MESSAGE_UNEXPECTED. */
export class ExpectationFailed extends BrokerError {
  /** All messages that arrived during the expectation, matching or not. */
  readonly seen: readonly SeenMessage[];

  constructor(code: string, message: string, seen: readonly SeenMessage[]) {
    super(code, message);
    this.seen = seen;
  }
}

/** The number of messages listed in an error; the newest are listed. */
const MAX_LISTED = 20;
/** Characters of a payload in an error. */
const MAX_SHOWN = 60;

const HINT =
  'If it came before, begin the expectation before the cause of the message, and await it afterwards: only messages that come later count.';

/** Advances the clock while it watches a broker for a message. */
export class Expectation {
  readonly filter: string;
  readonly #broker: Broker;
  readonly #clock: VirtualClock;
  readonly #withinMs: number;
  readonly #where: ((message: SeenMessage) => boolean) | undefined;
  readonly #startMs: number;
  readonly #seen: SeenMessage[] = [];
  readonly #unwatch: () => void;
  #found: SeenMessage | undefined;
  #whereFailed: { readonly error: unknown } | undefined;

  /** @param before messages that count although they arrived before the expectation */
  constructor(broker: Broker, clock: VirtualClock, filter: string, options: ExpectOptions, before: readonly Message[]) {
    const fault = checkTopicFilter(filter);
    if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', 'filter', 'a topic filter', filter, fault);
    checkNames(options, ['within', 'where'], 'the expectation');
    this.filter = filter;
    this.#broker = broker;
    this.#clock = clock;
    this.#withinMs = durationMs(options.within ?? '1s', 'within');
    this.#where = options.where;
    this.#startMs = clock.monotonic();
    for (const message of before) if (message.isSystem === filter.startsWith('$SYS')) this.#check(message);
    this.#unwatch = this.#watch();
  }

  /** Advance the clock until a matching message arrives, at most by the time given. */
  async expectMessage(): Promise<SeenMessage> {
    const found = await this.#wait();
    if (found !== undefined) return found;
    const text = `no message ${this.#describe()} came within ${this.#withinMs} ms`;
    throw this.#failure('MESSAGE_EXPECTED', text, this.#seen.length === 0 ? `\n${HINT}` : '');
  }

  /** Advance the clock by the time given, and fail at the first matching message. */
  async expectNone(): Promise<void> {
    const found = await this.#wait();
    if (found === undefined) return;
    const text = `a message ${this.#describe()} came, but none was expected within ${this.#withinMs} ms`;
    throw this.#failure('MESSAGE_UNEXPECTED', text);
  }

  async #wait(): Promise<SeenMessage | undefined> {
    const clock = this.#clock;
    const untilMs = this.#startMs + this.#withinMs;
    try {
      await clock.settle();
      while (this.#found === undefined) {
        const withinMs = untilMs - clock.monotonic();
        if (withinMs < 0 || !(await clock.step(withinMs))) break;
      }
      const leftMs = untilMs - clock.monotonic();
      if (this.#found === undefined && leftMs > 0) await clock.advance(leftMs);
    } finally {
      this.#unwatch();
    }
    if (this.#whereFailed !== undefined) throw this.#whereFailed.error;
    return this.#found;
  }

  #watch(): () => void {
    const broker = this.#broker;
    // The event message.publish does not report the broker's own messages.
    if (this.filter.startsWith('$SYS')) return broker.subscribe(this.filter, (message) => this.#check(message));
    const listener = ({ message }: { message: Message }) => this.#check(message);
    broker.on('message.publish', listener);
    return () => void broker.off('message.publish', listener);
  }

  #check(message: Message): void {
    const { topic, qos, retain, properties, clientId } = message;
    const payload = Buffer.from(message.payload); // a copy, because the broker reuses its buffers
    const seen = { topic, payload, text: payload.toString(), qos, retain, properties, clientId, at: this.#clock.now() };
    this.#seen.push(seen);
    if (this.#found !== undefined || !matches(this.filter, topic)) return;
    try {
      if (this.#where?.(seen) !== false) this.#found = seen;
    } catch (error) {
      this.#whereFailed ??= { error };
      this.#found = seen; // ends the expectation
    }
  }

  #describe(): string {
    return `on "${this.filter}"${this.#where === undefined ? '' : ' accepted by "where"'}`;
  }

  #failure(code: string, text: string, more = ''): ExpectationFailed {
    const startWallMs = this.#clock.now() - this.#clock.monotonic() + this.#startMs;
    const lines = this.#seen.slice(-MAX_LISTED).map((message) => `\n  ${line(message, startWallMs)}`);
    const last = this.#seen.length > lines.length ? `, the last ${lines.length} of ${this.#seen.length}` : '';
    const came =
      lines.length === 0 ? '. No other messages came.' : `. Messages that came meanwhile${last}:${lines.join('')}`;
    return new ExpectationFailed(code, text + came + more, this.#seen);
  }
}

function line(message: SeenMessage, startMs: number): string {
  const { topic, text, qos, retain, clientId, at } = message;
  const shown = truncated(text, MAX_SHOWN);
  const from = clientId === '' ? 'the app' : `client "${clientId}"`;
  return `+${at - startMs} ms  ${topic}  ${JSON.stringify(shown)}  QoS ${qos}${retain ? ', retained' : ''}  from ${from}`;
}
