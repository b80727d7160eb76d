// A request is a PUBLISH with a Response Topic and Correlation Data (MQTT 5.0, section 4.10). All requests of a client
// have the same response topic, so it subscribes once for a session; the correlation data is random, so that a
// responder that knows one request cannot answer another one. Each pending request has a timer on the clock of the
// client, which also bounds the time until the SUBACK and the PUBACK. Responses to earlier requests of a session may
// arrive right after the CONNACK.

import { onAbort } from '../base/abort-listeners.ts';
import { randomBytes } from '../base/builtins.ts';
import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput } from '../base/errors.ts';
import { durationMs } from '../base/fields.ts';
import type { MessageInput } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { PublishPacket } from '../packets/types.ts';
import { responseTopicOf } from '../topics/client-topics.ts';
import { checkTopicName } from '../topics/topic.ts';
import { answerTo, failureIn } from './answers.ts';
import type { ClientConnection } from './connection.ts';
import { checkRequestOptions } from './option-check.ts';
import type { PublishResult, ReceivedMessage, RequestHandler, RequestOptions } from './options.ts';
import { publishPacket } from './packets.ts';
import type { Pending } from './pending.ts';
import { refusal } from './refusal.ts';
import type { ClientSession } from './session.ts';
import type { ClientSubscriptions } from './subscriptions.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
/** Maximum number of pending requests of a client. */
const MAX_PENDING = 10_000;
const CORRELATION_BYTES = 16;

/** The requests of a client that wait for a response. */
export class ClientRequests {
  /** Number of responses to requests that are no longer pending. */
  late = 0;
  readonly #connection: ClientConnection;
  readonly #session: ClientSession;
  readonly #clock: Clock;
  readonly #subscriptions: ClientSubscriptions;
  readonly #publish: (packet: PublishPacket) => Promise<PublishResult>;
  readonly #topic: string;
  /** By correlation data, one character for each byte. */
  readonly #pending = new Map<string, Pending<ReceivedMessage>>();
  /** The SUBSCRIBE for the response topic, until its SUBACK. */
  #subscribing: Promise<void> | undefined = undefined;

  constructor(
    connection: ClientConnection,
    session: ClientSession,
    clock: Clock,
    subscriptions: ClientSubscriptions,
    publish: (packet: PublishPacket) => Promise<PublishResult>
  ) {
    this.#connection = connection;
    this.#session = session;
    this.#clock = clock;
    this.#subscriptions = subscriptions;
    this.#publish = publish;
    this.#topic = topicFor(connection);
  }

  /** True if a request is pending. */
  get isAwaited(): boolean {
    return this.#pending.size > 0;
  }

  /** See `Client.request`. */
  request(
    topic: string,
    payload: Buffer | Uint8Array | string | undefined,
    options: RequestOptions
  ): Promise<ReceivedMessage> {
    return new Promise((resolve, reject) => {
      const connection = this.#connection;
      const clock = this.#clock;
      connection.checkConnected();
      const timeoutMs = checkedTimeout(options);
      const { qos = 1, properties, signal } = options;
      const correlationData = randomBytes(CORRELATION_BYTES);
      const required = { responseTopic: this.#topic, correlationData };
      const packet = publishPacket({ topic, payload, qos, properties: { ...properties, ...required } });
      signal?.throwIfAborted();
      if (this.#pending.size >= MAX_PENDING)
        throw new BrokerError('QUOTA_EXCEEDED', `${MAX_PENDING} requests of the client wait for a response`);
      const key = correlationData.toString('latin1');
      const end = () => {
        this.#pending.delete(key);
        clock.clearTimeout(timer);
        release();
        connection.updateFlow();
      };
      const fail = (error: Error) => {
        if (this.#pending.has(key)) end();
        reject(error);
      };
      const expire = () =>
        fail(new BrokerError('REQUEST_TIMEOUT', `no response to the request "${topic}" within ${timeoutMs} ms`));
      const timer = clock.setTimeout(expire, timeoutMs);
      const release = onAbort(signal, () => fail(signal?.reason));
      const settle = (message: ReceivedMessage) => {
        end();
        const code = failureIn(message.properties);
        if (code === undefined) resolve(message);
        else reject(new BrokerError('RESPONDER_FAILED', `the responder to the request "${topic}" has failed: ${code}`));
      };
      this.#pending.set(key, { resolve: settle, reject: fail });
      this.#send(packet, key).catch(fail);
      connection.updateFlow();
    });
  }

  /** Take a message if it is a response. @returns false: it is not one */
  take(message: ReceivedMessage): boolean {
    if (message.topic !== this.#topic) return false;
    message.ack();
    const pending = this.#pending.get(message.properties.correlationData?.toString('latin1') ?? '');
    if (pending === undefined) this.late++;
    else pending.resolve(message);
    return true;
  }

  /** Reject everything that waits, because the connection is closed. */
  close(): void {
    for (const { reject } of [...this.#pending.values()]) reject(this.#connection.closedError());
  }

  async #send(packet: PublishPacket, key: string): Promise<void> {
    if (!this.#session.subscribed.has(this.#topic)) await (this.#subscribing ??= this.#subscribe());
    if (!this.#pending.has(key) || !this.#connection.isConnected) return; // it has ended, or `close` rejects it
    this.#session.requesting();
    const { reasonCode } = await this.#publish(packet);
    if (reasonCode !== ReasonCode.noMatchingSubscribers) return;
    const why = `the request "${packet.topic}" has no subscribers`;
    this.#pending.get(key)?.reject(new BrokerError('NO_SUBSCRIBERS', why));
  }

  async #subscribe(): Promise<void> {
    try {
      const [code] = await this.#subscriptions.subscribe(this.#topic, { qos: 1, retainHandling: 2 }, undefined);
      const what = `the subscription to the response topic "${this.#topic}" was refused`;
      if (code >= 0x80) throw refusal('SUBSCRIBE_REFUSED', what, code, {});
    } finally {
      this.#subscribing = undefined; // after a refusal, the next request tries again
    }
  }
}

/** The handler of the messages that a responder receives. @param failed reports an error of the handler, and of the response */
export function responding(
  handler: RequestHandler,
  connection: ClientConnection,
  publish: (packet: PublishPacket) => Promise<PublishResult>,
  failed: (error: Error) => void
): (request: ReceivedMessage) => void {
  const send = async (response: MessageInput) => {
    if (!connection.isConnected) return;
    try {
      await publish(publishPacket(response));
    } catch (error) {
      if (!connection.isClosing) throw error;
    }
  };
  const respond = async (request: ReceivedMessage) => {
    await answerTo(request, handler, send, failed);
    request.ack();
  };
  return (request) => void respond(request);
}

/** The topic of the responses: from the Response Information of the server, if it is valid. */
function topicFor({ connack, clientId }: ClientConnection): string {
  const given = connack?.properties?.responseInformation;
  const topic = given?.endsWith('/') ? `${given}response` : given;
  return topic === undefined || checkTopicName(topic) !== undefined ? responseTopicOf(clientId) : topic;
}

/** @returns the timeout in milliseconds @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, DURATION_INVALID */
function checkedTimeout(options: RequestOptions): number {
  checkRequestOptions(options);
  const { timeout = DEFAULT_TIMEOUT_MS } = options;
  const timeoutMs = durationMs(timeout, 'timeout');
  if (timeoutMs > 0 && timeoutMs < Infinity) return timeoutMs;
  throw new InvalidInput('OPTION_INVALID', 'timeout', 'a finite duration above 0', timeout);
}
