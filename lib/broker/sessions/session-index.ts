// Subscriptions of the sessions listed here are added and removed only here, so that the session, its log, the
// routing and the counters agree. A session is in it from its admission until its chart ends (`forget`), connected or
// not, and at most one for a client id: adding one replaces the previous one, whose `forget` then finds another
// session and does nothing. An ended session is removed at once, its subscriptions in slices.

import { Roster } from '../../base/collections/roster.ts';
import { TextMap } from '../../base/collections/text-map.ts';
import type { Pace } from '../../base/pace.ts';
import { Metric } from '../../events/metrics.ts';
import { DISCONNECT_REASONS, type DisconnectReason } from '../../events/reasons.ts';
import { Watermark } from '../../monitor/machine/watermark.ts';
import { SlowConsumers } from '../../monitor/slow-consumers.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Subscription } from '../../routing/subscription.ts';
import { isShared } from '../../routing/subscriptions.ts';
import type { Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import type { Services } from '../services.ts';

/** Maximum number of subscriptions of an ended session that are removed in one turn. */
const FORGET_AT_ONCE = 1_000;

/** The sessions of the broker by client id, connected or not. It also adds their subscriptions to the routing. */
export class SessionIndex {
  readonly #services: Services;
  readonly #routing: Routing;
  /** Called when a subscription was removed. */
  readonly #removed: (subscription: Subscription) => void;
  readonly #sessions = new TextMap<Session>();
  readonly #roster = new Roster<Session>();
  readonly #slowConsumers: SlowConsumers;
  /** The watermark of the number of sessions. */
  readonly #watermark: Watermark;
  #online = 0;
  #persistent = 0;
  #subscribers = 0;
  #subscriptions = 0;

  constructor(services: Services, routing: Routing, removed: (subscription: Subscription) => void) {
    this.#services = services;
    this.#routing = routing;
    this.#removed = removed;
    this.#slowConsumers = new SlowConsumers(services.wheel, services.alarms);
    this.#watermark = new Watermark(services.alarms, (count) => ({
      id: 'too_many_processes',
      title: 'there are many sessions',
      summary: `there are ${count} sessions, connected or not; at most ${services.settings.maxSessions} are possible (options maxSessions, processHighWatermark)`
    }));
    this.configured();
  }

  /** Apply changed options of the alarm about the number of sessions. */
  configured(): void {
    const { maxSessions, processHighWatermark, processLowWatermark } = this.#services.settings;
    const [high, low] = [processHighWatermark, processLowWatermark].map((percent) => (maxSessions * percent) / 100);
    this.#watermark.move(high, low, this.#sessions.size);
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Number of sessions with a connection. */
  get onlineCount(): number {
    return this.#online;
  }

  /** Number of sessions that outlive their connections. */
  get persistentCount(): number {
    return this.#persistent;
  }

  /** Number of sessions with subscriptions. */
  get subscriberCount(): number {
    return this.#subscribers;
  }

  /** Number of subscriptions of all sessions. */
  get subscriptionCount(): number {
    return this.#subscriptions;
  }

  /** Get the sessions that follow a number, in order of creation. @param most maximum number of sessions, at least 1 */
  after(number: number, most: number): Session[] {
    return this.#roster.after(number, most);
  }

  get(clientId: string): Session | undefined {
    return this.#sessions.get(clientId);
  }

  has(clientId: string): boolean {
    return this.#sessions.has(clientId);
  }

  values(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  /** Count the messages that wait in the queues of all sessions, in slices. */
  async countQueued(pace: Pace): Promise<number> {
    let count = 0;
    for (const { outlet } of this.#sessions.values()) {
      count += outlet.queue?.waiting ?? 0;
      if (pace.spend()) await pace.next();
    }
    return count;
  }

  hasRoom(): boolean {
    const { maxSessions } = this.#services.settings;
    return maxSessions === 0 || this.#sessions.size < maxSessions;
  }

  hasRoomForSubscription(): boolean {
    const { settings } = this.#services;
    const routing = this.#routing;
    return settings.maxTotalSubscriptions === 0 || routing.count < settings.maxTotalSubscriptions;
  }

  /** Tell whether a client resumes a stored session. While memory is short it may connect, because that sends its queued messages. */
  isReturning({ cleanStart, clientId }: SessionClient): boolean {
    return !cleanStart && this.get(clientId) !== undefined;
  }

  /** Add a session. It replaces the previous session of its client id. @param createdAt wall-clock milliseconds */
  add(session: Session, createdAt: number): void {
    const { metrics } = this.#services;
    const previous = this.#sessions.get(session.client.clientId);
    if (previous !== undefined) this.#roster.delete(previous);
    this.#sessions.set(session.client.clientId, session);
    session.listed(this.#roster.nextNumber(), createdAt);
    this.#roster.add(session);
    metrics.note('sessions', this.#sessions.size);
    metrics.note('channels', this.#sessions.size);
    this.#watermark.is(this.#sessions.size);
  }

  /** Called when a session has connected or disconnected. */
  changed(session: Session, isConnected: boolean): void {
    const { metrics } = this.#services;
    this.notePersistence(session, session.client.isPersistent);
    if (isConnected) metrics.note('connections', ++this.#online);
    else this.#online--;
  }

  /** Called when the CONNACK has been sent to a client. */
  connected({ client }: Session, sessionPresent: boolean): void {
    const { events, reasons } = this.#services;
    const { clientId, transportInfo } = client;
    const from = transportInfo.remoteAddress;
    reasons.add(sessionPresent ? 'resumed' : 'connected', {
      clientId,
      detail: from === undefined ? undefined : `from ${from}`
    });
    if (events.heard['client.connected']) events.emit('client.connected', { client, sessionPresent });
  }

  /** Called when a client has not read for the zone's slowConsumerTimeout. */
  slowConsumer(session: Session): void {
    const { notices, clock } = this.#services;
    notices.warn('busy_port', session.client.clientId, 'does not read what is sent to it');
    this.#slowConsumers.add(clock.monotonic());
  }

  /** Called when the broker stops. */
  stop(): void {
    this.#slowConsumers.stop();
  }

  /** Drop all queued QoS 0 messages, because memory is short. */
  shedQos0(): void {
    for (const session of this.#sessions.values()) session.outlet.queue?.shed('qos0_msg');
  }

  /** Note whether a session is persistent, for `persistentCount`. */
  notePersistence(session: Session, isPersistent: boolean): void {
    if (!session.countPersistent(isPersistent)) return;
    this.#persistent += isPersistent ? 1 : -1;
    if (isPersistent) this.#services.metrics.note('sessions.persistent', this.#persistent);
  }

  /** Add a subscription to a session and to the routing. */
  addSubscription(session: Session, subscription: Subscription, isRestored = false): void {
    const { metrics } = this.#services;
    const routing = this.#routing;
    session.subscriptions.add(subscription);
    this.#subscriptions++;
    if (!isRestored) session.log?.subscribed(subscription.filter);
    routing.add(subscription);
    if (session.subscriptions.size === 1) metrics.note('subscribers', ++this.#subscribers);
    metrics.note('subscriptions', routing.count);
    metrics.note('suboptions', routing.count);
    metrics.note('subscriptions.shared', routing.sharedCount);
    metrics.note('topics', routing.filterCount);
    metrics.note('routes', routing.filterCount);
  }

  /** Remove a subscription from a session and from the routing. */
  removeSubscription(session: Session, subscription: Subscription): void {
    session.subscriptions.delete(subscription.filter);
    this.#subscriptions--;
    session.log?.subscribed(subscription.filter);
    this.#routing.remove(subscription);
    this.#removed(subscription);
    if (session.subscriptions.size === 0) this.#subscribers--;
  }

  /**
   * Remove an ended session. Its subscriptions are removed in slices, one per turn, so that other work is not delayed. The shared ones are
   * removed immediately, because their groups would otherwise choose this session again, also for the messages that it hands over.
   */
  forget(session: Session): void {
    const { metrics, events, reasons } = this.#services;
    const routing = this.#routing;
    const { client, lifecycle } = session;
    lifecycle.abortDecision();
    if (client.clientId === '' || this.#sessions.get(client.clientId) !== session) return;
    this.#sessions.delete(client.clientId);
    this.#watermark.is(this.#sessions.size);
    this.#roster.delete(session);
    this.#subscriptions -= session.subscriptions.size;
    metrics.counts[Metric.sessionTerminated]++;
    this.notePersistence(session, false);
    if (session.subscriptions.size > 0) this.#subscribers--;
    if (session.subscriptions.shared > 0)
      for (const each of session.subscriptions.values()) if (isShared(each.filter)) routing.remove(each);
    this.#removeSlice(session.subscriptions.values());
    const reason = lifecycle.ending?.reason ?? 'closed';
    if (client.isPersistent || session.subscriptions.size > 0)
      reasons.add('session_ended', { clientId: client.clientId, detail: endTextOf(session, reason) });
    if (events.heard['session.terminated']) events.emit('session.terminated', { client, reason });
  }

  #removeSlice(left: Iterator<Subscription>): void {
    const { turn } = this.#services;
    const routing = this.#routing;
    for (let count = 0; count < FORGET_AT_ONCE; count++) {
      const next = left.next();
      if (next.done) return;
      if (!isShared(next.value.filter)) routing.remove(next.value);
      this.#removed(next.value);
    }
    turn.later(() => this.#removeSlice(left));
  }
}

/** The reason of the end of a session, with the option that decides how long it may be kept. */
function endTextOf({ client, protocolVersion }: Session, reason: DisconnectReason): string {
  const { about } = DISCONNECT_REASONS[reason];
  const { sessionExpiry, agreement } = client;
  const option = protocolVersion === 5 ? 'maxSessionExpiryInterval' : 'sessionExpiryInterval';
  if (reason !== 'expired' || sessionExpiry === 0 || sessionExpiry < agreement.zone[option]) return about;
  return `${about} The option \`${option}\` of the zone allows ${sessionExpiry} s.`;
}
