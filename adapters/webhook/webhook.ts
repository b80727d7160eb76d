// Events become entries of an outbox, with the client id as the key: events of one client stay in order. Only events
// that a rule asks for have a listener, and those about messages take the topic filter, so that other messages stay
// on the fast path. An answer with a status other than 2xx counts as sent and is not repeated, because the documented
// interface ignores answers; requests without an answer are repeated. A function of the app is never called twice for
// an event.

import type { ConnectorKind } from '../../lib/adapter.ts';
import { checkBroker } from '../../lib/adapter.ts';
import type { Broker, BrokerEvents, ConnectorTest, Outbox, OutboxCounters } from '../../lib/index.ts';
import { EVENTS, SendError, StateError } from '../../lib/index.ts';
import { tlsOf } from '../outgoing/index.ts';
import { BODIES, bodyOf, WEBHOOK_EVENTS, type WebhookEvent } from './bodies.ts';
import { readWebhookOptions, type WebhookBody, type WebhookOptions, type WebhookSettings } from './options.ts';
import { appliesTo, type WebhookRule } from './rules.ts';
import { WebhookSender } from './sender.ts';
import { Sendings } from './sendings.ts';

/** The events whose listeners take a topic filter, so that messages of other topics stay on the fast path. */
const FILTERED: readonly WebhookEvent[] = ['message.publish', 'message.delivered', 'message.acked', 'message.dropped'];

/** Interval in which a status is reported once, in milliseconds. */
const REPORT_MS = 60_000;

/** Sends events of a broker to a web server, or to a function of the app. */
export class Webhook {
  /** The name of the webhook. */
  readonly name: string;
  readonly #broker: Broker;
  readonly #settings: WebhookSettings;
  readonly #outbox: Outbox;
  readonly #sender: WebhookSender | undefined;
  readonly #sendings = new Sendings();
  /** The time of the last report, by status. */
  readonly #reported = new Map<string, number>();
  #refusal: Error | undefined;
  #refused = 0;
  #listeners: (() => void)[] = [];
  /** The test in progress. */
  #test: Promise<ConnectorTest> | undefined = undefined;
  readonly #detach: () => void;
  #isClosed = false;

  /** @internal */
  constructor(broker: Broker, settings: WebhookSettings) {
    const { name, url, onEvent, headers, secret, publicOnly, batch, concurrency } = settings;
    this.name = name;
    this.#broker = broker;
    this.#settings = settings;
    this.#sender =
      url &&
      new WebhookSender({
        url,
        tls: tlsOf(settings),
        headers,
        secret: secret?.bytes,
        isPublicOnly: publicOnly,
        maxSockets: concurrency * 2, // includes connections whose answers have not been read to the end yet
        isBatched: batch > 0,
        clock: broker.clock,
        answered: (refusal) => this.#answered(refusal)
      });
    const { isPersisted, maxEntries, maxBytes, maxAge, timeout, backOff, maxBackOff } = settings;
    this.#detach = broker.connectors.attach('webhook', this);
    try {
      this.#outbox = broker.outboxes.open({
        name: `webhook:${name}`,
        send: (entries, attempt) =>
          this.#sender?.send(entries, attempt, this.#sendings.headersOf(entries)) ??
          callWith(onEvent as NonNullable<typeof onEvent>, entries[0].content),
        settled: ({ id, content }, outcome, error) => {
          this.#sendings.ended(id, outcome === 'sent' ? undefined : outcome);
          // otherwise the app would not learn of an error of its function
          if (error !== undefined && outcome !== 'sent' && this.#sender === undefined)
            broker.failed(error.cause ?? error, `the function of webhook ${name}, for ${String(content).slice(0, 60)}`);
        },
        batch: this.#sender === undefined ? 1 : Math.max(1, batch),
        maxAge: this.#sender === undefined ? 0 : maxAge, // a function is not called again, even if it has not answered
        ...{ concurrency, isPersisted, maxEntries, maxBytes, timeout, backOff, maxBackOff }
      });
    } catch (error) {
      this.#detach();
      throw error;
    }
    if (settings.rules?.length === 0) broker.failed(withoutRules(name), `creating the webhook ${name}`);
    this.start();
  }

  /** True if events are sent. Queued events are sent in any case. */
  get isStarted(): boolean {
    return this.#listeners.length > 0;
  }

  /**
   * `down`: the server cannot be reached; `stopped`: the broker is not started, or the webhook is stopped and its queue is empty. See `Outbox.state`.
   */
  get state(): Outbox['state'] {
    return this.isStarted || this.size > 0 ? this.#outbox.state : 'stopped';
  }

  /** Number of queued events. */
  get size(): number {
    return this.#outbox.size;
  }

  /** The reason why the last request has failed, or its status if not 2xx; undefined after a success. */
  get lastError(): Error | undefined {
    return this.#outbox.lastError ?? this.#refusal;
  }

  /**
   * Number of requests that the server has answered with a status other than 2xx. They count as sent and are not
   * repeated, because the documented interface ignores the answer; the first one of each status per minute becomes an
   * `error` event.
   */
  get refused(): number {
    return this.#refused;
  }

  /** Counters of sent, repeated and dropped events. */
  get counters(): OutboxCounters {
    return this.#outbox.counters;
  }

  /** @deprecated Use `counters`. */
  get figures(): OutboxCounters {
    return this.counters;
  }

  /** Start sending events. A webhook is started when it is created. */
  start(): void {
    if (this.isStarted || this.#isClosed) return;
    const rules = this.#settings.rules ?? WEBHOOK_EVENTS.map((event) => ({ event }));
    for (const rule of rules) this.#listeners.push(this.#listen(rule.event, rule));
  }

  /** Stop sending new events. Queued events are sent. */
  stop(): void {
    for (const remove of this.#listeners) remove();
    this.#listeners = [];
  }

  /**
   * Send one event to the server that is marked as a test, with the headers and the signature of all events: its `action` is `webhook_test`, and
   * `test` is true. It is sent also if the webhook is stopped, and not repeated. The test waits for the answer for `timeout`, at most 30 seconds,
   * and ends with the webhook, or when the broker begins to stop.
   * Calls during a test have its result.
   * @throws StateError CONNECTOR_UNTESTABLE: the webhook calls a function of the app
   */
  async test(): Promise<ConnectorTest> {
    const sender = this.#sender;
    if (sender === undefined) {
      const message = `the webhook "${this.name}" calls a function of the app, to which no test is sent`;
      throw new StateError('CONNECTOR_UNTESTABLE', message);
    }
    this.#test ??= sender.test(JSON.stringify(this.#testBody()), this.#settings.timeout).finally(() => {
      this.#test = undefined;
    });
    return this.#test;
  }

  /** End the test in progress with an error. The broker calls this when it begins to stop. */
  endTest(): void {
    this.#sender?.endTest();
  }

  #testBody(): object {
    const { clock, settings } = this.#broker;
    const ts = Math.floor(clock.now() / 1000);
    return { action: 'webhook_test', test: true, webhook: this.name, node: settings.node, ts };
  }

  /** Resolves when all events that can currently be sent have been sent; see `Outbox.idle`. */
  idle(): Promise<void> {
    return this.#outbox.idle();
  }

  /** Stop, and close the connections. Queued events are dropped unless they are persisted. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#detach();
    this.stop();
    this.#outbox.close();
    this.#sendings.end();
    this.#sender?.close();
  }

  /** Close, and delete the queued events, including those in the store. */
  delete(): void {
    this.close();
    this.#broker.outboxes.delete(this.#outbox.name);
  }

  /** @deprecated Use `delete`. */
  discard(): void {
    this.delete();
  }

  #answered(refusal: Error | undefined): void {
    this.#refusal = refusal;
    if (refusal === undefined) return;
    this.#refused++;
    const nowMs = this.#broker.clock.monotonic();
    const last = this.#reported.get(refusal.message);
    if (last !== undefined && nowMs - last < REPORT_MS) return;
    this.#reported.set(refusal.message, nowMs); // one entry per status
    this.#broker.failed(refusal, `the webhook ${this.name}`);
  }

  #listen<E extends WebhookEvent>(name: E, rule: WebhookRule): () => void {
    const broker = this.#broker;
    const { node } = broker.settings;
    const context = { encoding: this.#settings.encodePayload, node };
    const row = BODIES[name] as (typeof BODIES)[E];
    const topicOf = row.topic as ((event: BrokerEvents[E]) => string) | undefined;
    const isFiltered = FILTERED.includes(name);
    const send = (event: BrokerEvents[E]) => {
      if (this.#isClosed) return; // another listener of the same event may have closed the webhook
      const topic = topicOf?.(event);
      if (name === 'message.publish' && (topic === '$SYS' || topic?.startsWith('$SYS/'))) return;
      if (topic !== undefined && !isFiltered && !appliesTo(rule, topic)) return;
      const key = (row.key as (event: BrokerEvents[E]) => string)(event);
      const id = this.#outbox.add(key, JSON.stringify(bodyOf(name, event, context)));
      const message = 'message' in event ? event.message : undefined;
      const connector = { kind: 'webhook', name: this.name, url: this.#settings.url };
      if (message !== undefined) this.#sendings.begun(id, broker.monitor.sending(message, connector));
    };
    broker.on(name, send, { filter: isFiltered ? rule.topic : undefined });
    return () => broker.off(name, send);
  }
}

/** The error for documented settings with a URL and without rules. */
function withoutRules(name: string): StateError {
  const message = `the webhook ${name} sends nothing: web.hook.api.url has no rule. Add rules such as web.hook.rule.message.publish.1 = {"action": "on_message_publish"}, or use the option url, which sends all events`;
  return new StateError('WEBHOOK_WITHOUT_RULES', message);
}

/**
 * Call the function of the app for an event.
 * @throws SendError, so that the call is not repeated
 */
async function callWith(onEvent: NonNullable<WebhookOptions['onEvent']>, content: string | Buffer): Promise<void> {
  const body = JSON.parse(String(content)) as WebhookBody;
  const event = WEBHOOK_EVENTS.find((name) => EVENTS[name].action === body.action) as WebhookEvent;
  try {
    await onEvent(body, event);
  } catch (error) {
    throw new SendError('the function has failed', { isFinal: true, cause: error });
  }
}

/**
 * Send events of a broker to a web server, as JSON with the documented keys:
 * `webhook(broker, { url: 'http://127.0.0.1:3000/mqtt' })`.
 *
 * Events of one client are sent in order, one after the other; those of different clients concurrently. An event is
 * sent when the server has answered; a status other than 2xx is counted (`refused`) and reported, and the event is not
 * sent again. Requests that do not reach it are repeated with the same header `webhook-id`. A server that is slow or
 * down never delays the broker; see `Outbox` for the limits.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN; StateError RECORD_EXISTS if a webhook with this name exists,
 * OUTBOX_IN_USE if the app has an outbox with its name
 */
export function webhook(broker: Broker, options: WebhookOptions): Webhook {
  checkBroker(broker, 'webhook');
  return new Webhook(broker, readWebhookOptions(options));
}

/**
 * Allow webhooks to be created at run time, over the management interface or with `broker.connectors`:
 * `createBroker({ connectors: [webhooks()] })`. Headers, secrets and keys are stored with the state of the broker, and
 * never shown.
 */
export function webhooks(): ConnectorKind<Broker> {
  return {
    name: 'webhook',
    secrets: ['headers', 'secret', 'key', 'passphrase'],
    check: (settings) => {
      readWebhookOptions(settings as WebhookOptions);
    },
    create: (broker, settings) => webhook(broker, settings as WebhookOptions)
  };
}
