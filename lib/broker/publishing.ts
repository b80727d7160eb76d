import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput, NotAuthorized, StateError } from '../base/errors.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { Connection } from '../connection/connection.ts';
import type { Verdicts } from '../connection/verdicts.ts';
import type { Announcer } from '../events/announcer.ts';
import type { Events } from '../events/events.ts';
import {
  allowsUnmatched,
  type Hook,
  type HookRegistry,
  isApproval,
  isThenable,
  type Refusal,
  type Verdict
} from '../events/hooks.ts';
import { Metric, type Metrics } from '../events/metrics.ts';
import type { DropReason } from '../events/reasons.ts';
import { DROP_REASONS } from '../events/reasons.ts';
import { isAllowedCode } from '../packets/allowed-codes.ts';
import { type Frame, Message, type MessageInput } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { Routing } from '../routing/routing.ts';
import { type Route, type Subscription, TopicKind } from '../routing/subscription.ts';
import type { PublishDecision } from '../session/ports.ts';
import type { Session } from '../session/session.ts';
import type { SessionClient } from '../session/session-client.ts';
import type { WillState } from '../session/will.ts';
import type { Ledger } from '../store/ledger.ts';
import { checkTopicName } from '../topics/topic.ts';
import { type DelayedMessages, parseDelayed } from './features/delayed.ts';
import type { Retainer } from './features/retainer.ts';
import type { Life } from './life.ts';

type HookAnswer = Awaited<ReturnType<Hook<'publish'>>>;

/** The parts of the broker that `Publishing` uses. */
export interface PublishingHost {
  readonly clock: Clock;
  readonly time: TimeReading;
  readonly metrics: Metrics;
  readonly events: Events;
  readonly hooks: HookRegistry;
  readonly announcer: Announcer;
  readonly routing: Routing;
  readonly retainer: Retainer;
  readonly delayed: DelayedMessages;
  readonly ledger: Ledger | undefined;
  readonly life: Life;
  readonly settings: { readonly zones: ReadonlyMap<string, Zone> };
  readonly pressure: {
    readonly isMemoryExhausted: boolean;
    readonly isRefusing: boolean;
    readonly isSpaceLow: boolean;
  };
  readonly taps: { readonly isOpen: boolean };
  readonly rewrites: { readonly hasRules: boolean };
  readonly turn: { later(run: () => void): void };
}

/** The path of a message through the broker: hooks, retained copy, subscribers. */
export class Publishing {
  /** Hooks or a zone may refuse or change messages of clients. */
  hasHooks = false;
  /** No hook, listener or tap needs single messages: runs of QoS 0 frames may be forwarded unchanged. */
  isFastPathOpen = true;
  readonly #host: PublishingHost;
  /** A message of the app is being published. Messages that its handlers publish wait for the next turn, which prevents endless recursion. */
  #isPublishing = false;
  #waiting: (() => void)[] = [];
  /** A zone has `aclNomatch: 'deny'`, which refuses messages even without hooks. */
  readonly #hasDenyingZone: boolean;
  /** The answers of all authorizePublish hooks depend on client and topic alone, so each is asked once for a connection and topic. */
  #keepsVerdicts = true;

  constructor(host: PublishingHost) {
    this.#host = host;
    this.#hasDenyingZone = [...host.settings.zones.values()].some(({ aclNomatch }) => aclNomatch === 'deny');
  }

  /** Update `hasHooks` and `isFastPathOpen` after a change of hooks, listeners, taps or rewrite rules. */
  watch(): void {
    const { hooks, events, taps, rewrites } = this.#host;
    this.hasHooks = hooks.authorizePublish.length > 0 || hooks.publish.length > 0 || this.#hasDenyingZone;
    this.#keepsVerdicts = hooks.authorizePublish.every((hook) => hooks.isCached(hook));
    this.isFastPathOpen =
      this.#keepsVerdicts &&
      hooks.publish.length === 0 &&
      hooks.deliver.length === 0 &&
      !events.hearsAll('message.publish') &&
      !events.hearsAll('message.delivered') &&
      !events.hearsAll('message.dropped') &&
      !taps.isOpen &&
      !rewrites.hasRules;
  }

  /** Call the deliver hooks, which must answer synchronously. */
  mayDeliver(message: Message, client: ClientInfo): boolean {
    const { hooks, announcer } = this.#host;
    for (const hook of hooks.deliver) {
      const answer = hooks.call('deliver', hook, { message, client }, false, client);
      if (answer === false) return false;
      if (typeof answer === 'object' && isThenable(answer)) {
        const text = 'deliver: expected true, false or undefined at once, got a promise';
        const wrong = new InvalidInput('HOOK_INVALID', 'deliver', 'an answer at once', 'a promise', text);
        announcer.failed(wrong, 'hook deliver', client);
        return false;
      }
    }
    return true;
  }

  /**
   * Call the authorizePublish hooks, then the publish hooks. Synchronous if all hooks are.
   * @param topics keeps the verdict for the connection; undefined for messages that no connection publishes
   */
  decide(
    message: Message,
    route: Route,
    client: SessionClient | undefined,
    topics?: { readonly verdicts: Verdicts }
  ): PublishDecision | Promise<PublishDecision> {
    const { hooks, metrics } = this.#host;
    if (client === undefined) return this.#change(message, route, client, 0);
    const verdicts = this.#keepsVerdicts ? topics?.verdicts : undefined;
    const known = verdicts?.get(route.topic);
    if (known !== undefined)
      return known === 0 ? this.#change(message, route, client, 0) : { message, route, reasonCode: known };
    const isAllowed = allowsUnmatched(client.zoneSettings, hooks.authorizePublish);
    if (client.isSuperuser || (isAllowed && hooks.authorizePublish.length === 0)) {
      verdicts?.set(route.topic, 0);
      return this.#change(message, route, client, 0);
    }
    metrics.counts[Metric.clientCheckAcl]++;
    const question = { client, message: this.#inner(message, route) };
    const verdict = hooks.first<typeof question, Verdict>(
      'authorizePublish',
      hooks.authorizePublish,
      question,
      FAILED,
      client
    );
    const act = (answer: Verdict | undefined) => {
      const code = refusalCode(answer ?? isAllowed);
      if (answer !== FAILED) verdicts?.set(route.topic, code);
      return code === 0 ? this.#change(message, route, client, 0) : { message, route, reasonCode: code };
    };
    if (!isThenable(verdict)) return act(verdict);
    message.detach();
    const life = this.#host.life.number;
    return verdict.then((answer) => {
      if (this.#host.life.number !== life) return { message, route, reasonCode: ReasonCode.serverShuttingDown };
      this.#host.time.read(); // the hook took its time [MQTT-3.3.2-6]
      return act(answer);
    });
  }

  /** A delayed message with its inner topic, to which authorization applies. */
  #inner(message: Message, route: Route): Message {
    if (route.kind !== TopicKind.delayed) return message;
    const delay = parseDelayed(message.topic, this.#host.clock.now() / 1000);
    return typeof delay === 'object' ? this.retopic(message, delay.topic) : message;
  }

  /** Call the publish hooks. Each receives the message as the previous one has changed it. */
  #change(
    message: Message,
    route: Route,
    client: ClientInfo | undefined,
    from: number
  ): PublishDecision | Promise<PublishDecision> {
    const { hooks } = this.#host;
    // The publish hooks run for a delayed message when its delay has passed.
    if (route.kind === TopicKind.delayed) return { message, route, reasonCode: 0 };
    for (let at = from; at < hooks.publish.length; at++) {
      const answer = hooks.call<Parameters<Hook<'publish'>>[0], HookAnswer>(
        'publish',
        hooks.publish[at],
        { message, client },
        FAILED,
        client
      );
      if (isThenable(answer)) {
        message.detach();
        const life = this.#host.life.number;
        return answer.then((value) => {
          if (this.#host.life.number !== life) return { message, route, reasonCode: ReasonCode.serverShuttingDown };
          this.#host.time.read();
          const outcome = this.#apply(value, message, route);
          return outcome.reasonCode === 0 ? this.#change(outcome.message, outcome.route, client, at + 1) : outcome;
        });
      }
      const outcome = this.#apply(answer, message, route);
      if (outcome.reasonCode !== 0) return outcome;
      ({ message, route } = outcome);
    }
    return { message, route, reasonCode: 0 };
  }

  #apply(answer: HookAnswer, message: Message, route: Route): PublishDecision {
    if (answer === false) return { message, route, reasonCode: ReasonCode.notAuthorized };
    if (typeof answer !== 'object' || answer === null || isApproval(answer)) return { message, route, reasonCode: 0 };
    if ('allow' in answer) return { message, route, reasonCode: codeOf(answer) };
    try {
      // Fields that the answer does not contain stay unchanged.
      const { topic, payload, qos, retain } = message;
      const given = answer as MessageInput;
      const changed = this.make(
        {
          topic: given.topic ?? topic,
          payload: given.payload ?? payload,
          qos: given.qos ?? qos,
          retain: given.retain ?? retain,
          properties: given.properties ?? boundProperties(message)
        },
        message.origin as SessionClient | undefined
      );
      const isElsewhere = changed.topic !== route.topic;
      return { message: changed, route: isElsewhere ? this.#host.routing.of(changed.topic) : route, reasonCode: 0 };
    } catch (error) {
      this.#host.announcer.failed(error, 'hook publish', undefined);
      return { message, route, reasonCode: ReasonCode.implementationSpecificError };
    }
  }

  /** Create a message. @throws InvalidInput TOPIC_NAME_INVALID, MESSAGE_INVALID */
  make(input: MessageInput, origin: SessionClient | undefined): Message {
    const fault = typeof input.topic === 'string' ? checkTopicName(input.topic) : 'the topic must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', input.topic, fault);
    this.#host.time.read();
    return Message.from(input, origin, this.#host.time.nowMs, this.#host.time.wallMs);
  }

  /** A copy of a message with another topic and the current time. */
  retopic(message: Message, topic: string): Message {
    const { payload, qos, retain, origin } = message;
    const properties = boundProperties(message);
    return Message.from(
      { topic, payload, qos, retain, properties },
      origin,
      this.#host.time.nowMs,
      this.#host.time.wallMs
    );
  }

  /**
   * Whether a QoS 1 or 2 message would have to be queued for a subscriber on its route although there is no room in memory or in the store.
   * Called before any delivery, and only while `isRefusing`.
   */
  refuses(message: Message, { targets, groups }: Route): boolean {
    const { isMemoryExhausted, isSpaceLow } = this.#host.pressure;
    if (message.qos === 0) return false;
    const lacksRoom = (isPersisted: boolean, hasRoom: boolean) =>
      isPersisted ? isSpaceLow : isMemoryExhausted && !hasRoom;
    for (const { subscriber, qos, noLocal } of targets) {
      if (qos === 0 || (noLocal && subscriber.clientId === message.clientId)) continue;
      if (lacksRoom(subscriber.isPersisted, subscriber.hasRoom)) return true;
    }
    return groups.some((group) => lacksRoom(group.mayPersist, group.hasRoom));
  }

  /** Announce a message, retain it if requested, and deliver it to the subscribers. @returns the number of subscribers that accepted it */
  route(message: Message, route: Route): number {
    const host = this.#host;
    const { counts } = host.metrics;
    if (message.hasExpired(host.time.nowMs)) {
      host.announcer.dropped(message, 'expired', undefined); // it expired while a hook decided [MQTT-3.3.2-5]
      return 0;
    }
    if (!message.isSystem) {
      counts[Metric.messagesPublish]++;
      if (host.events.heard['message.publish'] && (route.isObserved || host.events.hearsAll('message.publish'))) {
        host.events.emit('message.publish', { message, client: message.origin as SessionClient | undefined });
        route = host.routing.freshened(route); // a listener may have changed subscriptions
      }
    }
    const { targets, groups } = route;
    if (message.retain) host.retainer.retain(message);
    let taken = 0;
    for (let at = 0; at < targets.length; at++) if (targets[at].subscriber.deliver(message, targets[at])) taken++;
    for (let at = 0; at < groups.length; at++) {
      const member = groups[at].choose(message);
      if (member?.subscriber.deliver(message, member)) taken++;
    }
    if (taken === 0 && targets.length === 0 && groups.length === 0 && !message.isSystem) {
      host.announcer.dropped(message, 'no_subscribers', undefined);
    }
    return taken;
  }

  /** Route a run of QoS 0 frames of one topic on the fast path. Subscribers with another layout get single messages. */
  routeRun(
    connection: Connection<Session>,
    route: Route,
    buf: Buffer,
    start: number,
    end: number,
    count: number,
    longest: number
  ): void {
    const host = this.#host;
    const { counts } = host.metrics;
    const { targets, groups } = route;
    const { session } = connection;
    counts[Metric.packetsReceived] += count;
    counts[Metric.packetsPublishReceived] += count;
    counts[Metric.messagesReceived] += count;
    counts[Metric.messagesQos0Received] += count;
    counts[Metric.messagesPublish] += count;
    if (targets.length === 0 && groups.length === 0) {
      counts[Metric.messagesDropped] += count;
      counts[Metric.messagesDroppedNoSubscribers] += count;
      return;
    }
    const layout = connection.reader.fastPath;
    const bytes = end - start;
    let run: Frame | undefined;
    let messages: Message[] | undefined;
    const notedBefore = host.ledger?.unwritten.noted ?? 0;
    for (let at = 0; at < targets.length; at++) {
      const target = targets[at];
      const { subscriber } = target;
      if (
        subscriber.outboundFastPath === layout &&
        target.ids === undefined &&
        longest <= subscriber.maxFrame &&
        !(subscriber === session.delivery && isNotForSelf(target, session))
      ) {
        run ??= { buf, start, end, packetIdAt: 0 };
        subscriber.deliverRun(run, bytes, count);
      } else {
        messages ??= this.#unroll(connection, route, buf, start, end);
        for (const message of messages) subscriber.deliver(message, target);
      }
    }
    if (groups.length > 0) {
      messages ??= this.#unroll(connection, route, buf, start, end);
      for (const group of groups) {
        for (const message of messages) {
          const member = group.choose(message);
          member?.subscriber.deliver(message, member);
        }
      }
    }
    if (messages !== undefined && host.ledger !== undefined) connection.chargeUnwritten(host.ledger, notedBefore);
  }

  /** Create the messages of a run of frames. */
  #unroll(connection: Connection<Session>, route: Route, buf: Buffer, start: number, end: number): Message[] {
    const { nowMs, wallMs } = this.#host.time;
    const layout = connection.reader.fastPath === 5 ? 5 : 4;
    const messages: Message[] = [];
    const { maxMessageExpiryInterval } = connection.session.client.zoneSettings;
    const expiry = maxMessageExpiryInterval === Infinity ? -1 : maxMessageExpiryInterval;
    for (let at = start; at < end; ) {
      let body = at + 1;
      let size = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = buf[body++];
        size |= (byte & 127) << shift;
        if (byte < 128) break;
      }
      // The length is read from the frame, because a route that is not cached does not contain it.
      const payloadAt = body + 2 + ((buf[body] << 8) | buf[body + 1]) + (layout === 5 ? 1 : 0);
      const wire = { buf, start: at, end: body + size, packetIdAt: 0 };
      messages.push(
        new Message(
          wire,
          payloadAt - at,
          payloadAt - at,
          layout,
          route.topic,
          0,
          false,
          connection.session.client,
          nowMs,
          wallMs,
          expiry
        )
      );
      at = body + size;
    }
    return messages;
  }

  /** Publish a will with the rights of its client. The hooks run as for any PUBLISH. */
  will({ client }: Session, will: WillState): undefined | Promise<boolean> {
    const host = this.#host;
    let message: Message;
    try {
      message = this.make(will.message, client);
    } catch (error) {
      host.announcer.failed(error, 'publishing a will', client);
      return undefined;
    }
    const route = host.routing.of(message.topic);
    if (route.kind === TopicKind.system && !client.isSuperuser) {
      host.announcer.dropped(message, 'not_authorized', undefined);
      return undefined;
    }
    return this.#settle(this.decide(message, route, client), 'publishing a will', client);
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
    const host = this.#host;
    const finish = (outcome: PublishDecision): boolean => {
      if (outcome.reasonCode !== 0) host.announcer.dropped(outcome.message, dropReason(outcome.reasonCode), undefined);
      else if (outcome.route.kind === TopicKind.delayed) this.delay(outcome.message);
      else {
        const route = host.routing.freshened(outcome.route);
        if (host.pressure.isRefusing && this.refuses(outcome.message, route))
          host.announcer.dropped(outcome.message, 'quota', undefined);
        else this.route(outcome.message, route);
      }
      return outcome.reasonCode !== ReasonCode.serverShuttingDown;
    };
    if (!isThenable(decided)) {
      finish(decided);
      return undefined;
    }
    return decided.then(finish).catch((error: unknown) => {
      host.announcer.failed(error, during, client);
      return true;
    });
  }

  /** Delay a message to `$delayed/<seconds>/<topic>`. @returns a reason code */
  delay(message: Message): number {
    const refusal = this.#addDelayed(message);
    if (refusal === undefined) return ReasonCode.noMatchingSubscribers;
    this.#host.announcer.dropped(message, refusal, undefined);
    return DROP_REASONS[refusal].reasonCode;
  }

  #addDelayed(message: Message): 'topic_invalid' | 'not_authorized' | 'quota' | undefined {
    const { clock, delayed } = this.#host;
    const delay = delayed.isStarted ? parseDelayed(message.topic, clock.now() / 1000) : 'invalid';
    if (typeof delay !== 'object' || checkTopicName(delay.topic) !== undefined) return 'topic_invalid';
    if (/^\$(SYS|delayed)(\/|$)/.test(delay.topic) && message.origin !== undefined) return 'not_authorized';
    if (this.#host.pressure.isSpaceLow) return 'quota';
    return delayed.add(message, delay.topic, delay.delayMs) === 'added' ? undefined : 'quota';
  }

  /** Publish a delayed message after its delay. It was authorized when it was accepted; the publish hooks run now. */
  release(message: Message, topic: string): undefined | Promise<boolean> {
    const host = this.#host;
    const { ledger } = host;
    const life = host.life.number;
    if (ledger !== undefined && message.ticket > ledger.settled)
      return ledger
        .committed(message.ticket)
        .then(
          () => host.life.number === life && (this.release(message, topic) ?? true),
          () => true // the message was refused
        )
        .catch((error: unknown) => {
          host.announcer.failed(error, 'publishing a delayed message', undefined);
          return true;
        });
    host.time.read();
    const due = this.retopic(message, topic);
    const decided = this.#change(due, host.routing.of(topic), message.origin as SessionClient | undefined, 0);
    return this.#settle(decided, 'publishing a delayed message', undefined);
  }

  /** Publish a message of the app. @returns the number of subscribers that accepted it */
  publish(input: MessageInput): number | Promise<number> {
    const message = this.make(input, undefined);
    if (!this.#isPublishing) return this.#publish(message);
    message.detach();
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          if (!this.#host.life.isRunning) throw stoppedMeanwhile(message);
          resolve(this.#publish(message));
        } catch (error) {
          reject(error);
        }
      });
      if (this.#waiting.length === 1) this.#host.turn.later(() => this.publishWaiting());
    });
  }

  /** Publish the messages that wait for the next turn. */
  publishWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  #publish(message: Message): number | Promise<number> {
    const host = this.#host;
    const { ledger } = host;
    const act = (outcome: PublishDecision): number => {
      if (outcome.reasonCode !== 0) throw refusedByHook(outcome);
      if (outcome.route.kind !== TopicKind.delayed) {
        const route = host.routing.freshened(outcome.route);
        if (host.pressure.isRefusing && this.refuses(outcome.message, route)) throw this.#noRoom(outcome.message);
        return this.route(outcome.message, route);
      }
      const code = this.delay(outcome.message);
      if (code >= 0x80) throw this.#notDelayed(code, outcome.message);
      return 0;
    };
    const finish = (outcome: PublishDecision): number | Promise<number> => {
      if (ledger === undefined) return act(outcome);
      const { message: changed, route } = outcome;
      const isPersisted =
        changed.retain || route.kind === TopicKind.delayed || (changed.qos > 0 && host.routing.persistsAny(route));
      if (ledger.isFailed && isPersisted && outcome.reasonCode === 0) {
        host.announcer.dropped(changed, 'store_failed', undefined);
        throw ledger.refusal();
      }
      const { promises } = ledger;
      changed.ticket = ledger.ticket;
      const taken = act(outcome);
      if (ledger.promises !== promises) return ledger.committed(ledger.ticket).then(() => taken);
      changed.ticket = 0; // its publisher is answered now, so a commit that fails later may not refuse it
      return taken;
    };
    this.#isPublishing = true;
    try {
      const decided = this.#change(message, host.routing.of(message.topic), undefined, 0);
      return isThenable(decided) ? decided.then(finish) : finish(decided);
    } finally {
      this.#isPublishing = false;
    }
  }

  /** The error of `broker.publish` if a message has to be queued and there is no room. No subscriber has received the message. */
  #noRoom(message: Message): BrokerError {
    this.#host.announcer.dropped(message, 'quota', undefined);
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

  /** Publish a message of the broker itself. No hooks run, and the message is not counted. */
  publishSystem(topic: string, payload: string, qos: QoS, retain: boolean): void {
    const message = this.make({ topic, payload, qos, retain }, undefined);
    message.isSystem = true;
    this.route(message, this.#host.routing.of(topic));
  }
}

const FAILED: Refusal = { allow: false, reasonCode: ReasonCode.implementationSpecificError };

/** The properties of a message, with the expiry interval that the broker has set. Packets of MQTT 3.x do not contain it. */
function boundProperties({ properties, expiryInterval }: Message): MessageInput['properties'] {
  return expiryInterval < 0 ? properties : { ...properties, messageExpiryInterval: expiryInterval };
}

function refusalCode(answer: Verdict): number {
  if (isApproval(answer)) return 0;
  return typeof answer === 'object' ? codeOf(answer) : ReasonCode.notAuthorized;
}

/** The reason code of a refusal by a hook: an error code that is allowed in an acknowledgement [MQTT-3.4.2-1]. */
function codeOf({ reasonCode = ReasonCode.notAuthorized }: Refusal): number {
  return reasonCode >= 0x80 && isAllowedCode('puback', reasonCode) ? reasonCode : ReasonCode.unspecifiedError;
}

function isNotForSelf(target: Subscription, session: Session): boolean {
  return target.noLocal || session.client.zoneSettings.ignoreLoopDeliver;
}

function refusedByHook({ message, reasonCode }: PublishDecision): Error {
  if (reasonCode === ReasonCode.serverShuttingDown) return stoppedMeanwhile(message);
  return new NotAuthorized(`a publish hook refused the message to "${message.topic}"`, reasonCode);
}

/** The drop reason for a reason code. With 0x8B, the broker has stopped while a hook was deciding. */
function dropReason(reasonCode: number): DropReason {
  return reasonCode === ReasonCode.serverShuttingDown ? 'server_shutting_down' : 'not_authorized';
}

function stoppedMeanwhile(message: Message): Error {
  return new StateError(
    'BROKER_NOT_STARTED',
    `the broker stopped before the message to "${message.topic}" was published`
  );
}
