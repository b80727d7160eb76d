// The filters of a SUBSCRIBE are processed in their order, those behind an asynchronous hook after its decision, and
// the connection is not read meanwhile. SUBACK waits for the commit of the subscriptions; retained messages follow
// the SUBACK, so a feed is created with the subscription and released after the answer. `check` is all that needs no
// hook, and is applied again to a filter that a hook has put in place of the requested one. After each hook or
// listener the session may have ended or have another connection, for which nothing more is subscribed.

import type { AccessControl } from '../../access/access-control.ts';
import { BrokerError, ProtocolError } from '../../base/errors.ts';
import type { Connection } from '../../connection/connection.ts';
import { Pause } from '../../connection/pause.ts';
import type { Verdicts } from '../../connection/verdicts.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import { isThenable } from '../../events/hooks.ts';
import { Metric } from '../../events/metrics.ts';
import type { SubscriptionOptions } from '../../events/subscription-options.ts';
import { requestedNote } from '../../monitor/reasons/requested-filter.ts';
import { encodeSuback, encodeUnsuback } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { QoS, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from '../../packets/types.ts';
import type { RetainedFeed } from '../../retained/retained-feed.ts';
import { RequestedFilters } from '../../routing/requested-filters.ts';
import type { Routing } from '../../routing/routing.ts';
import { Subscription } from '../../routing/subscription.ts';
import { isShared } from '../../routing/subscriptions.ts';
import { resumeAfterHook, type Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import type { Ledger } from '../../store/ledger.ts';
import { isOfClients } from '../../topics/client-topics.ts';
import { checkTopicFilter, innerFilter, mountedFilter, unmountedFilter } from '../../topics/topic.ts';
import type { AutoSubscription } from '../configuration/auto-subscriptions.ts';
import type { Retainer } from '../features/retainer.ts';
import { filterFault, lackOfRoom } from '../rights/filter-checks.ts';
import { type FilterDecision, FilterDecisions } from '../rights/filter-decisions.ts';
import { FilterRequests, grantedBefore, requestedFilters } from '../rights/filter-requests.ts';
import type { SourceReview } from '../rights/source-review.ts';
import type { Services } from '../services.ts';
import type { SessionIndex } from '../sessions/session-index.ts';

/** The reason code of UNSUBACK while the store cannot be written. 0x97 is not allowed there [MQTT-3.11.3-2]. */
const NOT_PERSISTED = ReasonCode.implementationSpecificError;

/** Maximum number of filters of one packet that are processed in one turn. */
const FILTERS_AT_ONCE = 1_000;

/** Number of answers waiting for a commit at which the connection is not read any further. */
const MAX_WAITING = 1_000;

/** The parts of the broker that `Subscribing` uses. */
interface SubscribingHost {
  readonly routing: Routing;
  readonly rewrites: { apply(topic: string, kind: 'publish' | 'subscribe'): string };
  readonly retainer: Retainer;
  readonly sessions: SessionIndex;
  readonly ledger: Ledger | undefined;
  readonly pressure: { readonly isSpaceLow: boolean };
  readonly access: AccessControl;
  readonly publishing: { readonly hooks: { readonly verdictEpoch: number } };
  /** Records how long a subscription is allowed. */
  readonly sourceReview: SourceReview;
}

/** The data of a subscription to be granted. */
interface Granting {
  /** The filter that the client has requested, after topic rewriting. */
  readonly requested: string;
  readonly request: SubscriptionRequest;
  readonly ids: readonly number[] | undefined;
  readonly feeds: RetainedFeed[];
  /** See `SourceReview.note`. */
  readonly epoch: number | undefined;
}

/** Processes SUBSCRIBE and UNSUBSCRIBE, and subscribes and unsubscribes on behalf of clients. */
export class Subscribing {
  readonly #services: Services;
  readonly #host: SubscribingHost;
  readonly #decisions: FilterDecisions;
  readonly #requests = new FilterRequests((session, filter) => this.remove(session, filter));
  /** Number of answers that wait for a commit, by connection. */
  readonly #waiting = new Map<Connection<Session>, number>();

  constructor(services: Services, host: SubscribingHost) {
    this.#services = services;
    this.#host = host;
    this.#decisions = new FilterDecisions(services, host.access.deciders);
  }

  /** Process the filters of a SUBSCRIBE in order and answer with one SUBACK [MQTT-3.8.4-5]. */
  subscribe(session: Session, packet: SubscribePacket): void {
    const { subscriptions, messageId, properties } = packet;
    const connection = session.connection as Connection<Session>;
    const ids = properties?.subscriptionIdentifier;
    const granted: number[] = [];
    const feeds: RetainedFeed[] = [];
    const answer = () => {
      if (session.connection !== connection || connection.isClosed) {
        releaseFeeds(session, feeds); // there will be no SUBACK
        return;
      }
      const suback = encodeSuback({ cmd: 'suback', messageId, granted }, session.protocolVersion);
      const isGranted = granted.some((code) => code < 0x80);
      this.#whenPersisted(session, connection, isGranted, () => {
        if (!this.#answer(session, connection, suback, Metric.packetsSubackSent)) return;
        this.#announce(session, packet, granted);
        releaseFeeds(session, feeds);
      });
    };
    const next = (at: number): void | Promise<void> => {
      // Stop if another connection has taken over the session: it has not subscribed.
      for (const end = at + FILTERS_AT_ONCE; at < subscriptions.length && session.connection === connection; at++) {
        if (at === end) return this.#nextTurn().then(() => next(at));
        const code = this.#subscribeOne(session, subscriptions[at], ids, feeds);
        if (isThenable(code)) {
          return code.then((value) => {
            granted.push(value);
            return next(at + 1);
          });
        }
        granted.push(code);
      }
      answer();
    };
    this.#holdWhile(session, connection, next(0), 'subscribing');
  }

  #announce(session: Session, { subscriptions, properties }: SubscribePacket, granted: readonly number[]): void {
    const { events } = this.#services;
    if (!events.heard['client.suback']) return;
    const { client } = session;
    const id = properties?.subscriptionIdentifier?.[0];
    const requests = RequestedFilters.of(session.subscriptions);
    const results = subscriptions.map(({ topic: filter, ...options }, at) => {
      const stored = requests && mountedFilter(this.#host.rewrites.apply(filter, 'subscribe'), client.mountpoint);
      const found = stored === undefined || granted[at] >= 0x80 ? undefined : requests?.grantedFor(stored);
      const grantedFilter =
        found === undefined || found === stored ? undefined : unmountedFilter(found, client.mountpoint);
      return { filter, grantedFilter, options: { ...options, id }, reasonCode: granted[at] };
    });
    events.emit('client.suback', { client, results });
  }

  /** Continue when the subscriptions of a session are persisted. @param hasChanges whether the packet has changed subscriptions */
  #whenPersisted(session: Session, connection: Connection<Session>, hasChanges: boolean, run: () => void): void {
    const { log } = session;
    const { ledger } = this.#host;
    const ticket = log === undefined || ledger === undefined ? 0 : ledger.ticketOf(log);
    if (ledger === undefined || ticket === 0 || (ledger.isFailed && !hasChanges)) {
      run();
      return;
    }
    if (ledger.isFailed) {
      session.lifecycle.close('store_failed', { reasonCode: ReasonCode.quotaExceeded }); // the commit of the changes failed while hooks decided
      return;
    }
    const count = (this.#waiting.get(connection) ?? 0) + 1;
    this.#waiting.set(connection, count);
    if (count >= MAX_WAITING) connection.reader.pause(Pause.hook);
    ledger
      .committed(ticket)
      .then(
        () => {
          if (session.connection === connection && !connection.isClosed) run();
        },
        () => {
          if (session.connection === connection)
            session.lifecycle.close('store_failed', { reasonCode: ReasonCode.quotaExceeded });
        }
      )
      .catch((error: unknown) => session.failInternally(error, 'answering a subscriber'))
      .then(() => {
        const left = (this.#waiting.get(connection) as number) - 1;
        if (left > 0) this.#waiting.set(connection, left);
        else this.#waiting.delete(connection);
        if (count >= MAX_WAITING) resumeAfterHook(connection);
      });
  }

  /** Make the subscriptions of the option `autoSubscriptions` for a client that has connected. */
  autoSubscribe(session: Session): void {
    const { client } = session;
    for (const request of this.#services.settings.autoSubscriptions) {
      const names = { '%c': client.clientId, '%u': client.username ?? 'undefined' };
      let isSafe = true;
      const topic = request.topic.replace(/%[cu]/g, (placeholder) => {
        const name = names[placeholder as keyof typeof names];
        if (/[+#]/.test(name)) isSafe = false; // the wildcard would match topics of other clients
        return name;
      });
      const code = isSafe ? this.subscribeFor(session, { ...request, topic }) : ReasonCode.topicFilterInvalid;
      if (code < 0x80) continue;
      const text = `"${topic}" cannot be subscribed (0x${code.toString(16)})`;
      this.#services.announcer.failed(
        new BrokerError('AUTO_SUBSCRIPTION_FAILED', text),
        'subscribing at connect',
        client
      );
    }
  }

  /** Send an answer. @returns false if it exceeds the client's Maximum Packet Size, which ends the connection [MQTT-3.1.2-24] */
  #answer(session: Session, connection: Connection<Session>, packet: Buffer, metric: number): boolean {
    const { maxFrame } = session.client.agreement;
    if (packet.length <= maxFrame) {
      connection.writer.send(packet, metric);
      return true;
    }
    const why = `the answer takes ${packet.length} bytes, but the client accepts at most ${maxFrame} (Maximum Packet Size)`;
    session.fail(new ProtocolError(ReasonCode.packetTooLarge, why));
    return false;
  }

  /** Process no further packets of a connection while hooks decide. */
  #holdWhile(session: Session, connection: Connection<Session>, decided: void | Promise<void>, during: string): void {
    if (decided === undefined) return;
    connection.reader.pause(Pause.hook);
    decided
      .catch((error: unknown) => session.failInternally(error, during, connection))
      .finally(() => resumeAfterHook(connection));
  }

  #subscribeOne(
    session: Session,
    request: SubscriptionRequest,
    ids: readonly number[] | undefined,
    feeds: RetainedFeed[]
  ): number | Promise<number> {
    const { hooks, events, metrics } = this.#services;
    const { connection, client } = session;
    const { qos, noLocal, retainAsPublished, retainHandling } = request;
    const options: SubscriptionOptions = { qos, noLocal, retainAsPublished, retainHandling, id: ids?.[0] };
    metrics.counts[Metric.clientSubscribe]++;
    if (events.heard['client.subscribe']) events.emit('client.subscribe', { client, filter: request.topic, options });
    const filter = this.#host.rewrites.apply(request.topic, 'subscribe');
    const fault = this.check(session.client, filter, ids !== undefined);
    if (fault === ReasonCode.notAuthorized) this.#decisions.announce(client, filter, false);
    if (fault !== 0)
      return this.#refused(session, request, fault, this.#host.access.deciders.ofFilter(client, filter, fault), filter);
    const unasked = this.#decisions.unasked(client, filter);
    if (unasked === false) return this.#refused(session, request, ReasonCode.notAuthorized, DECIDERS.unmatched, filter);
    const epoch = isOfClients(innerFilter(filter)) ? undefined : this.#host.sourceReview.epochOf(session); // sources are not asked
    const granting = { requested: filter, request, ids, feeds, epoch };
    if (unasked) return this.#grant(session, { filter, code: qos, dueMs: undefined }, granting);
    const question = {
      client,
      options,
      verdicts: hooks.isCached('authorizeSubscribe') ? this.#verdictsOf(session) : undefined,
      check: (changed: string) => this.#checkChanged(session, changed, request, ids !== undefined)
    };
    const decision = this.#decisions.decide(filter, question);
    const act = (decided: FilterDecision): number => {
      const isAllowed = decided.code < 0x80;
      if (session.connection === connection) this.#decisions.announce(client, filter, isAllowed, decided.isCached);
      if (session.connection !== connection) return ReasonCode.unspecifiedError; // there will be no SUBACK
      if (!isAllowed) return this.#refused(session, request, decided.code, decided.decider, filter);
      return this.#grant(session, decided, granting);
    };
    return isThenable(decision) ? decision.then(act) : act(decision);
  }

  /** Check a filter with which a hook has replaced another. @returns 0 or the reason code that refuses it */
  #checkChanged(session: Session, filter: string, { noLocal }: SubscriptionRequest, hasId: boolean): number {
    if (noLocal && isShared(filter)) return ReasonCode.topicFilterInvalid; // [MQTT-3.8.3-4]
    return this.check(session.client, filter, hasId);
  }

  #verdictsOf({ connection }: Session): Verdicts | undefined {
    return connection?.reader.topics.verdicts(this.#services.settings, this.#host.publishing.hooks.verdictEpoch);
  }

  /** @param filter the requested filter, after topic rewriting */
  #refused(
    session: Session,
    { topic: requested }: SubscriptionRequest,
    code: number,
    decider: Decider | undefined,
    filter: string
  ): number {
    const { metrics, reasons } = this.#services;
    const { clientId, mountpoint } = session.client;
    const note = requested === filter ? undefined : requestedNote(requested);
    const texts = [decider?.text, note].filter((text) => text !== undefined);
    const detail = texts.length === 0 ? undefined : texts.join('; ');
    reasons.add('subscribe_refused', { clientId, topic: mountedFilter(filter, mountpoint), detail });
    metrics.counts[
      code === ReasonCode.notAuthorized ? Metric.packetsSubscribeAuthError : Metric.packetsSubscribeError
    ]++;
    return session.protocolVersion === 5 ? code : 0x80; // encodeSuback converts it for MQTT 3.1
  }

  /**
   * Perform the checks that need no hook: the form of a filter, the limits of the zone, and who may subscribe below `$SYS` and `$client`.
   * @param hasId the SUBSCRIBE has a Subscription Identifier
   * @returns 0 or the reason code that refuses the filter
   */
  check(client: SessionClient, filter: string, hasId: boolean): number {
    return filterFault(client, filter, hasId, this.#host.access.rules, this.#services.settings);
  }

  #grant(session: Session, decision: FilterDecision, { requested, request, ids, feeds, epoch }: Granting): number {
    const { filter, code } = decision;
    if (isGone(session)) return ReasonCode.unspecifiedError; // a listener ended it
    const { zone } = session.client.agreement;
    const granted = Math.min(code, zone.maxQosAllowed) as QoS;
    const stored = mountedFilter(filter, session.client.mountpoint);
    const known = session.subscriptions.get(stored);
    const lack = lackOfRoom(session, known === undefined, this.#host);
    if (lack !== undefined) return this.#refused(session, request, ReasonCode.quotaExceeded, lack, requested);
    if (!this.#requests.note(session, mountedFilter(requested, session.client.mountpoint), stored))
      return this.#refused(session, request, ReasonCode.quotaExceeded, DECIDERS.tooManyNames, requested);
    if (isGone(session)) return ReasonCode.unspecifiedError; // a listener of the previous subscription's removal ended it
    const subscription = this.#put(session, stored, { ...request, qos: granted }, ids, request.topic);
    if (isGone(session)) return ReasonCode.unspecifiedError;
    this.#host.sourceReview.note(session, subscription, decision, epoch);
    const handling = session.protocolVersion === 5 ? request.retainHandling : 0;
    if (handling === 0 || (handling === 1 && known === undefined)) {
      // [MQTT-3.3.1-9, -10]. Shared subscriptions have no feed.
      const feed = this.#host.retainer.feedFor(subscription);
      if (feed !== undefined) {
        session.outlet.addFeed(feed, true); // persisted by the commit of the subscription
        feeds.push(feed);
      }
    }
    return granted;
  }

  #put(
    session: Session,
    filter: string,
    options: SubscriptionOptions,
    ids: readonly number[] | undefined,
    requested: string
  ): Subscription {
    const { events, reasons } = this.#services;
    const { routing } = this.#host;
    const { outlet } = session;
    const { qos, noLocal, retainAsPublished, retainHandling } = options;
    let subscription = session.subscriptions.get(filter);
    if (subscription === undefined) {
      subscription = new Subscription(outlet, filter, qos, noLocal, retainAsPublished, retainHandling, ids);
      this.#host.sessions.addSubscription(session, subscription);
      const { clientId, mountpoint } = session.client;
      const detail = mountedFilter(requested, mountpoint) === filter ? undefined : requestedNote(requested);
      reasons.add('subscribed', { clientId, topic: filter, qos, detail });
    } else {
      // [MQTT-3.8.4-3]: change the options of the existing subscription, so that no message is missed.
      subscription.change(options, ids);
      routing.changed(filter);
      session.log?.subscribed(filter);
    }
    if (events.heard['session.subscribed']) {
      events.emit('session.subscribed', {
        client: session.client,
        filter: unmountedFilter(filter, session.client.mountpoint),
        requestedFilters: requestedFilters(session, filter),
        options: optionsOf(subscription)
      });
    }
    return subscription;
  }

  /** Resolves in the next turn. A packet with many filters is processed in slices, so that other connections are not delayed. */
  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#services.turn.later(resolve));
  }

  /** Process an UNSUBSCRIBE. Filters are compared character by character, and each has its own reason code [MQTT-3.10.4-1, -6]. */
  unsubscribe(session: Session, packet: UnsubscribePacket): void {
    const { unsubscriptions, messageId } = packet;
    const connection = session.connection as Connection<Session>;
    const granted: number[] = [];
    const next = (at: number): void | Promise<void> => {
      const end = at + FILTERS_AT_ONCE;
      this.#unsubscribeSome(session, unsubscriptions.slice(at, end), granted);
      if (end < unsubscriptions.length)
        return this.#nextTurn().then(() => (session.connection === connection ? next(end) : undefined));
      if (session.protocolVersion !== 5 && granted.includes(NOT_PERSISTED)) {
        if (session.connection === connection)
          session.lifecycle.close('store_failed', { reasonCode: ReasonCode.quotaExceeded }); // UNSUBACK of MQTT 3.x has no reason codes
        return;
      }
      const unsuback = encodeUnsuback({ cmd: 'unsuback', messageId, granted }, session.protocolVersion);
      if (session.connection === connection)
        this.#whenPersisted(session, connection, granted.includes(ReasonCode.success), () =>
          this.#answer(session, connection, unsuback, Metric.packetsUnsubackSent)
        );
    };
    this.#holdWhile(session, connection, next(0), 'unsubscribing');
  }

  #unsubscribeSome(session: Session, topics: readonly string[], granted: number[]): void {
    const { events, metrics } = this.#services;
    const { ledger } = this.#host;
    for (const topic of topics) {
      metrics.counts[Metric.clientUnsubscribe]++;
      if (events.heard['client.unsubscribe'])
        events.emit('client.unsubscribe', { client: session.client, filter: topic });
      const fault = checkTopicFilter(topic);
      if (fault !== undefined) {
        metrics.counts[Metric.packetsUnsubscribeError]++;
        granted.push(ReasonCode.topicFilterInvalid);
        continue;
      }
      const filter = mountedFilter(this.#host.rewrites.apply(topic, 'subscribe'), session.client.mountpoint);
      const stored = RequestedFilters.of(session.subscriptions)?.grantedFor(filter) ?? filter;
      if (ledger?.isFailed && mayBePersisted(session, stored)) {
        metrics.counts[Metric.packetsUnsubscribeError]++;
        granted.push(NOT_PERSISTED);
        continue;
      }
      const subscribed = grantedBefore(session, filter);
      if (subscribed !== undefined) this.#requests.release(session, filter, subscribed);
      granted.push(subscribed === undefined ? ReasonCode.noSubscriptionExisted : ReasonCode.success);
    }
  }

  /** Remove a subscription. @param detail why, unless its client has requested it @returns false if there was none */
  remove(
    session: Session,
    filter: string,
    detail?: string,
    code: 'unsubscribed' | 'subscription_withdrawn' = 'unsubscribed'
  ): boolean {
    const { events, reasons } = this.#services;
    const { client } = session;
    const subscription = session.state === 'gone' ? undefined : session.subscriptions.get(filter);
    if (subscription === undefined) return false;
    const shown = unmountedFilter(filter, client.mountpoint);
    const options = optionsOf(subscription);
    const event = { client, filter: shown, requestedFilters: requestedFilters(session, filter), options };
    this.#host.sessions.removeSubscription(session, subscription);
    reasons.add(code, { clientId: client.clientId, topic: filter, detail });
    if (events.heard['session.unsubscribed']) events.emit('session.unsubscribed', event);
    return true;
  }

  /**
   * Subscribe on behalf of a client. No hook runs. The filter is given without the mount point.
   * @returns the granted QoS, or a reason code of 0x80 or above
   */
  subscribeFor(session: Session, request: AutoSubscription): number {
    const options = {
      qos: request.qos ?? 0,
      noLocal: request.noLocal ?? false,
      retainAsPublished: request.retainAsPublished ?? false,
      retainHandling: request.retainHandling ?? 0
    } as const;
    const fault = this.check(session.client, request.topic, false);
    if (fault !== 0 && fault !== ReasonCode.notAuthorized) return fault;
    const feeds: RetainedFeed[] = [];
    const { topic } = request;
    const decision = { filter: topic, code: options.qos, dueMs: undefined };
    const granting = { requested: topic, request: { topic, ...options }, ids: undefined, feeds, epoch: undefined };
    const code = this.#grant(session, decision, granting);
    releaseFeeds(session, feeds);
    return code;
  }

  /** Remove a subscription to which its client no longer has the right. @returns false if there was none */
  withdraw(session: Session, filter: string, decider: Decider | undefined): boolean {
    return this.remove(session, filter, decider?.text, 'subscription_withdrawn');
  }

  /** Unsubscribe on behalf of a client. @param filter that of the subscription, or the requested one */
  unsubscribeFor(session: Session, filter: string): boolean {
    const stored = mountedFilter(filter, session.client.mountpoint);
    const granted = RequestedFilters.of(session.subscriptions)?.grantedFor(stored);
    const present = session.subscriptions.get(stored) === undefined ? (granted ?? stored) : stored;
    return this.remove(session, present, 'an operator or the app has ended it');
  }
}

function isGone({ state }: Session): boolean {
  return state === 'gone';
}

/** The options of a subscription in the form of events. */
function optionsOf(subscription: Subscription): SubscriptionOptions {
  const { qos, noLocal, retainAsPublished, retainHandling, subscriptionIds } = subscription;
  return { qos, noLocal, retainAsPublished, retainHandling, id: subscriptionIds?.[0] };
}

/** Start sending the retained messages of new subscriptions, after their SUBACK. */
function releaseFeeds({ outlet }: Session, feeds: readonly RetainedFeed[]): void {
  for (const feed of feeds) feed.release();
  if (feeds.length > 0) outlet.pump();
}

/** Tell whether a subscription may be in the store, including one that was removed since the last commit. */
function mayBePersisted({ log, subscriptions }: Session, filter: string): boolean {
  return log !== undefined && (subscriptions.get(filter) !== undefined || log.isUnwritten(filter));
}
