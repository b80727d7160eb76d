// Messages that no connection sends. A message that a handler of the app publishes while a message of the app is
// being published waits for the next turn, which prevents endless recursion; messages of rules do not wait, because
// rules limit the depth. The answer to the publisher follows the commit only if routing has caused a promise of the
// ledger, as for a PUBLISH. A will has the rights of its client and is authorized; a delayed message was authorized
// when it was accepted, and only the publish hooks run when it is due.

import { LRUCache } from 'lru-cache';
import { BrokerError, InvalidInput, NotAuthorized, StateError } from '../../base/errors.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import { isThenable } from '../../events/hooks.ts';
import type { DropReason } from '../../events/reasons.ts';
import {
  type AppMessageInput,
  awaitCommit,
  Message,
  type MessageInput,
  publishedByApp
} from '../../packets/message.ts';
import { NamedPublisher } from '../../packets/named-publisher.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { QoS } from '../../packets/types.ts';
import type { ClientInfo } from '../../records/client.ts';
import { type Route, TopicKind } from '../../routing/route.ts';
import type { WillState } from '../../session/life/will.ts';
import type { PublishDecision } from '../../session/ports.ts';
import type { Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { ticketOfAnswer } from '../../store/ledger.ts';
import type { PreparedMessage } from '../../streams/host.ts';
import { newMessage, publisherOf, retopic } from '../new-message.ts';
import type { MessageHooks } from '../rights/message-hooks.ts';
import type { Services } from '../services.ts';
import type { PublishingHost } from './publishing.ts';

/** The path of a message that `OwnMessages` uses; see `Publishing`. */
interface MessagePath {
  readonly hooks: MessageHooks;
  refusal(message: Message, route: Route): Decider | undefined;
  route(message: Message, route: Route): number;
  delay(message: Message): number;
}

/** Maximum size of a payload of a rule that is encoded in one step, in bytes or characters. */
const MAX_PLAIN_PAYLOAD = 65_536;
/** Maximum number of names of publishers that are cached. */
const MAX_PUBLISHERS = 1_000;

/**
 * Publishes the messages that do not come from a connection: those of the app, wills, delayed messages that are due, and those of the
 * broker.
 */
export class OwnMessages {
  readonly #services: Services;
  readonly #host: PublishingHost;
  readonly #publishing: MessagePath;
  /**
   * True while a message of the app is being published. Messages that its handlers publish wait for the next turn, which prevents endless
   * recursion.
   */
  #isPublishing = false;
  #waiting: (() => void)[] = [];
  /** The publishers in whose names the app publishes. */
  #publishers: LRUCache<string, NamedPublisher> | undefined = undefined;

  constructor(services: Services, host: PublishingHost, publishing: MessagePath) {
    this.#services = services;
    this.#host = host;
    this.#publishing = publishing;
  }

  /** Publish a will with the rights of its client. The hooks run as for any PUBLISH. */
  will({ client }: Session, will: WillState): undefined | Promise<boolean> {
    const services = this.#services;
    const host = this.#host;
    let message: Message;
    try {
      message = newMessage(will.message, client, services.time);
    } catch (error) {
      services.announcer.failed(error, 'publishing a will', client);
      return undefined;
    }
    const route = host.routing.of(message.topic);
    if (route.kind === TopicKind.system && !client.isSuperuser) {
      this.#publishing.hooks.announce(message, route, client, false);
      services.announcer.dropped(message, 'not_authorized', undefined, route, DECIDERS.systemTopic);
      return undefined;
    }
    return this.#settle(this.#publishing.hooks.decide(message, route, client), 'publishing a will', client);
  }

  /** Publish a response of the app, if the client that has chosen its topic may publish it there. */
  respond(input: MessageInput, client: SessionClient): void {
    const message = newMessage(input, client, this.#services.time);
    const fromApp = (decision: PublishDecision): PublishDecision => {
      if (decision.reasonCode === 0) publishedByApp(decision.message);
      return decision;
    };
    const decided = this.#publishing.hooks.decide(message, this.#host.routing.of(message.topic), client);
    const response = isThenable(decided) ? decided.then(fromApp) : fromApp(decided);
    void this.#settle(response, 'publishing a response', client);
  }

  /**
   * Route a message after its decision. No client waits for an acknowledgement of it.
   * @returns a promise if hooks decide asynchronously; it resolves to false if the broker has stopped first
   */
  #settle(
    decided: PublishDecision | Promise<PublishDecision>,
    during: string,
    client: ClientInfo | undefined
  ): undefined | Promise<boolean> {
    const services = this.#services;
    const host = this.#host;
    const finish = (outcome: PublishDecision): boolean => {
      if (outcome.reasonCode !== 0) {
        const { message, route, reasonCode, decider } = outcome;
        services.announcer.dropped(message, dropReason(reasonCode, decider), undefined, route, decider);
      } else if (outcome.route.kind === TopicKind.delayed) this.#publishing.delay(outcome.message);
      else {
        const route = host.routing.freshened(outcome.route);
        const decider = host.pressure.isRefusing ? this.#publishing.refusal(outcome.message, route) : undefined;
        if (decider !== undefined) services.announcer.dropped(outcome.message, 'quota', undefined, route, decider);
        else this.#publishing.route(outcome.message, route);
      }
      return outcome.reasonCode !== ReasonCode.serverShuttingDown;
    };
    if (!isThenable(decided)) {
      finish(decided);
      return undefined;
    }
    return decided.then(finish).catch((error: unknown) => {
      services.announcer.failed(error, during, client);
      return true;
    });
  }

  /** Publish a delayed message after its delay. It was authorized when it was accepted; the publish hooks run now. */
  release(message: Message, topic: string): undefined | Promise<boolean> {
    const services = this.#services;
    const host = this.#host;
    const { ledger } = host;
    const life = services.life.number;
    if (ledger !== undefined && message.ticket > ledger.settled)
      return ledger
        .committed(message.ticket)
        .then(
          () => services.life.number === life && (this.release(message, topic) ?? true),
          () => true // the message was refused
        )
        .catch((error: unknown) => {
          services.announcer.failed(error, 'publishing a delayed message', undefined);
          return true;
        });
    services.time.read();
    const due = retopic(message, topic, services.time);
    const decided = this.#publishing.hooks.change(due, host.routing.of(topic), publisherOf(message));
    return this.#settle(decided, 'publishing a delayed message', undefined);
  }

  /** Publish a message of the app. @returns the number of subscribers that accepted it */
  publish(input: AppMessageInput): number | Promise<number> {
    const message = newMessage(input, this.#nameOf(input.clientId), this.#services.time);
    if (!this.#isPublishing) return this.#publish(message);
    message.detach();
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          if (!this.#services.life.isRunning) throw stoppedMeanwhile(message);
          resolve(this.#publish(message));
        } catch (error) {
          reject(error);
        }
      });
      if (this.#waiting.length === 1) this.#services.turn.later(() => this.publishWaiting());
    });
  }

  /**
   * Publish a message of a rule at once, even while another message is published: the rules limit how deep this goes.
   * @param input with a topic name that is checked
   * @param isTimely the time has been read for the message that caused this one
   * @returns the number of subscribers that accepted it
   */
  republish(input: MessageInput, publisher: NamedPublisher, isTimely = false): number | Promise<number> {
    return this.#publish(this.#messageOf(input, publisher, isTimely));
  }

  /**
   * Let the hooks decide about a message of a rule that is published later, with the changes of another turn.
   * @param input as for `republish`
   */
  prepare(input: MessageInput, publisher: NamedPublisher): PreparedMessage | Promise<PreparedMessage> {
    const prepared = (outcome: PublishDecision): PreparedMessage => {
      let next: PublishDecision | undefined = outcome;
      const publish = async (): Promise<void> => {
        // a message that was refused is never published again, so each attempt needs a new one
        const decided = next ?? (await this.#decide(this.#messageOf(input, publisher)));
        next = undefined;
        await this.#nested(() => this.#withCommit(decided));
      };
      return { publish };
    };
    const decided = this.#nested(() => this.#decide(this.#messageOf(input, publisher)));
    return isThenable(decided) ? decided.then(prepared) : prepared(decided);
  }

  #messageOf(input: MessageInput, publisher: NamedPublisher, isTimely = false): Message {
    const { topic, payload = '', qos = 0, retain = false, properties } = input;
    const { time } = this.#services;
    if (properties !== undefined || payload.length > MAX_PLAIN_PAYLOAD || !(qos === 0 || qos === 1 || qos === 2))
      return newMessage(input, publisher, time);
    if (!isTimely) time.read();
    return Message.plain(topic, payload, qos, retain, publisher, time.nowMs, time.wallMs);
  }

  /** The publisher of a name: as long as it publishes, share groups see the same object. @throws InvalidInput MESSAGE_INVALID */
  #nameOf(clientId: string | undefined): NamedPublisher | undefined {
    if (clientId === undefined) return undefined;
    if (typeof clientId !== 'string') throw new InvalidInput('MESSAGE_INVALID', 'clientId', 'a string', clientId);
    this.#publishers ??= new LRUCache({ max: MAX_PUBLISHERS });
    let publisher = this.#publishers.get(clientId);
    if (publisher === undefined) this.#publishers.set(clientId, (publisher = new NamedPublisher(clientId)));
    return publisher;
  }

  /** Publish the messages that wait for the next turn. */
  publishWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  #publish(message: Message): number | Promise<number> {
    const isNested = this.#isPublishing;
    this.#isPublishing = true;
    try {
      const decided = this.#decide(message);
      return isThenable(decided) ? decided.then((outcome) => this.#finish(outcome)) : this.#finish(decided);
    } finally {
      this.#isPublishing = isNested;
    }
  }

  /** Run a function; messages that the app publishes during this wait for the next turn. */
  #nested<T>(run: () => T): T {
    const isNested = this.#isPublishing;
    this.#isPublishing = true;
    try {
      return run();
    } finally {
      this.#isPublishing = isNested;
    }
  }

  #decide(message: Message): PublishDecision | Promise<PublishDecision> {
    return this.#publishing.hooks.change(message, this.#host.routing.of(message.topic), undefined);
  }

  /** Publish a message after its decision. @returns the number of subscribers that accepted it, when the promised state is in the store */
  #finish(outcome: PublishDecision): number | Promise<number> {
    const { ledger, routing } = this.#host;
    if (ledger === undefined) return this.#act(outcome);
    const { message, route } = outcome;
    if (ledger.isFailed && outcome.reasonCode === 0 && routing.persists(message, route)) {
      this.#services.announcer.dropped(message, 'store_failed', undefined);
      throw ledger.refusal();
    }
    const { promises } = ledger;
    awaitCommit(message, ledger.ticket);
    const taken = this.#act(outcome);
    const ticket = ticketOfAnswer(ledger, promises, message);
    return ticket === 0 ? taken : ledger.committed(ticket).then(() => taken);
  }

  /**
   * Publish a message after its decision, so that subscribers receive it only after the commit of this turn. @throws BrokerError
   * STORE_FAILED
   */
  #withCommit(outcome: PublishDecision): Promise<unknown> {
    const { ledger } = this.#host;
    const { message } = outcome;
    if (ledger !== undefined) awaitCommit(message, ledger.ticket, true);
    this.#act(outcome);
    return ledger === undefined ? Promise.resolve() : ledger.committed(ledger.ticket);
  }

  /** @returns the number of subscribers that accepted it */
  #act(outcome: PublishDecision): number {
    const { routing, pressure } = this.#host;
    if (outcome.reasonCode !== 0) {
      const { message, reasonCode, decider } = outcome;
      this.#services.announcer.refused(message, dropReason(reasonCode, decider), decider);
      throw refusedMessage(outcome);
    }
    if (outcome.route.kind !== TopicKind.delayed) {
      const route = routing.freshened(outcome.route);
      const decider = pressure.isRefusing ? this.#publishing.refusal(outcome.message, route) : undefined;
      if (decider !== undefined) throw this.#noRoom(outcome.message, decider);
      return this.#publishing.route(outcome.message, route);
    }
    const code = this.#publishing.delay(outcome.message);
    if (code >= 0x80) throw this.#notDelayed(code, outcome.message);
    return 0;
  }

  /** The error of `broker.publish` if a message has to be queued and there is no room. No subscriber has received the message. */
  #noRoom(message: Message, decider: Decider): BrokerError {
    this.#services.announcer.dropped(message, 'quota', undefined, undefined, decider);
    const why = this.#host.pressure.isSpaceLow
      ? this.#noSpace
      : 'memory in use stays above memoryHighWatermark; raise it, or lower maxTotalMqueueBytes';
    return new BrokerError('QUOTA_EXCEEDED', `the message to "${message.topic}" cannot be queued: ${why}`);
  }

  get #noSpace(): string {
    return `${this.#host.ledger?.store.name}: the space of the store is used up; free disk space`;
  }

  /** The error of `broker.publish` if a delayed message is refused. */
  #notDelayed(code: number, { topic }: Message): BrokerError {
    if (code === ReasonCode.quotaExceeded && this.#host.pressure.isSpaceLow)
      return new BrokerError('QUOTA_EXCEEDED', `"${topic}": ${this.#noSpace}`);
    if (code === ReasonCode.quotaExceeded) {
      const text = 'the limit of delayed messages is reached (options maxDelayedMessages, maxDelayedBytes)';
      return new BrokerError('QUOTA_EXCEEDED', text);
    }
    const off = `"${topic}": delayed messages are disabled (option delayedPublish, feature delayed)`;
    if (!this.#host.delayed.isStarted) return new StateError('DELAYED_OFF', off);
    return new InvalidInput('TOPIC_NAME_INVALID', 'topic', '$delayed/<seconds>/<topic>', topic);
  }

  /** Publish a message of the broker. No hooks run, and the message is not counted. */
  publishSystem(topic: string, payload: string, qos: QoS, retain: boolean): void {
    const message = newMessage({ topic, payload, qos, retain }, undefined, this.#services.time, true);
    this.#publishing.route(message, this.#host.routing.of(topic));
  }
}

function refusedMessage({ message, reasonCode, decider }: PublishDecision): Error {
  if (reasonCode === ReasonCode.serverShuttingDown) return stoppedMeanwhile(message);
  if (decider?.drop === 'schema' && reasonCode === ReasonCode.payloadFormatInvalid) return mismatch(message, decider);
  const refused = `the message to "${message.topic}" is refused`;
  if (decider?.drop === 'schema') return new BrokerError('SCHEMA_FAILED', `${refused}: ${decider.detail}`);
  const isHook = decider === undefined || decider.by === 'hook';
  const text = isHook ? `a publish hook refused the message to "${message.topic}"` : `${refused}: ${decider.text}`;
  return new NotAuthorized(text, reasonCode);
}

function mismatch({ topic }: Message, { detail, reasonString = detail }: Decider): InvalidInput {
  const text = `the payload does not match a schema of topic "${topic}": ${reasonString}`;
  return new InvalidInput(
    'SCHEMA_MISMATCH',
    'payload',
    'a payload that matches the schemas of the topic',
    undefined,
    text
  );
}

/** The drop reason for a reason code. With 0x8B, the broker has stopped while a hook was deciding. */
function dropReason(reasonCode: number, decider: Decider | undefined): DropReason {
  return reasonCode === ReasonCode.serverShuttingDown ? 'server_shutting_down' : (decider?.drop ?? 'not_authorized');
}

function stoppedMeanwhile(message: Message): Error {
  return new StateError(
    'BROKER_NOT_STARTED',
    `the broker stopped before the message to "${message.topic}" was published`
  );
}
