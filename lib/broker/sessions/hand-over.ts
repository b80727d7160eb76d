// A stored session outlives its end until its messages are handed over (MQTT 5.0 section 4.8.2). Its record gets
// session expiry 0, which together with a time of disconnection means that it has ended, so the format is unchanged.
// The client may have a new session meanwhile, under another number. The queue is read one record at a time.
// Appending a message to the new member's queue and removing it from the old one happen in one turn, so one commit
// contains both and a crash leaves each message with exactly one member. A start continues unfinished hand-overs. A
// QoS 2 message for a member that is in memory only is removed first and sent after the commit: that session would
// not survive a crash, and the message must not go to a second member. The member is chosen once, before the commit,
// since a group that is asked twice answers differently; if it has disconnected after the commit, another one is
// chosen, and a crash before the next commit loses the message. At most 16 hand-overs run at a time, and they pause
// while less than 4 MB can be written before the reserve is used, because a message occupies its space twice until a
// compaction. Messages that are handed over have a mark in the new queue and come before the others of their
// priority, which are usually newer; the flow record has the number after the last of them. Their numbers are at the
// end of the queue, so a client that returns is sent nothing until all records up to this number have been read.
// Numbers before the head would need no mark, but segments, journals and the set of numbers that are done rely on
// ascending numbers. The limit of queues that follows from the disk counts all queued bytes, in flight or being
// handed over included, or the same bytes would count as new at their new member and displace other queues.

import type { DropReason } from '../../events/reasons.ts';
import type { Message } from '../../packets/message.ts';
import type { Group } from '../../routing/route.ts';
import type { Routing } from '../../routing/routing.ts';
import { mayReach, type Subscription } from '../../routing/subscription.ts';
import type { HandOverPosition } from '../../session/messages/queue.ts';
import type { SessionLog } from '../../session/messages/session-log.ts';
import type { HandOverPort } from '../../session/ports.ts';
import type { Session } from '../../session/session.ts';
import { afterCommit } from '../../store/after-commit.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { PersistedMessage } from '../../store/segment.ts';
import { parseSharedFilter } from '../../topics/topic.ts';
import { FilterIndex } from '../../topics/trie.ts';
import type { Services } from '../services.ts';
import { StoredHandOvers } from './stored-hand-overs.ts';

/**
 * Hands queued messages of a shared subscription over to another member of the group when the session has ended (MQTT 5.0 section 4.8.2).
 *
 * The member gets them in their order, before the messages that are queued for it, because these are usually newer.
 *
 * A queued message does not contain its subscription, so the subscription is found by its filter. If several subscriptions of the session
 * match the topic, the message is not handed over; it is dropped with the session, like the messages of its other subscriptions.
 */
class HandOver {
  readonly #index = new FilterIndex<Subscription>();
  readonly #groupOf: (subscription: Subscription) => Group | undefined;
  readonly #mountpoint: string;

  /** @param groupOf returns the group of a shared subscription; undefined: the group has no members */
  constructor(
    subscriptions: Iterable<Subscription>,
    mountpoint: string,
    groupOf: (subscription: Subscription) => Group | undefined
  ) {
    this.#groupOf = groupOf;
    this.#mountpoint = mountpoint;
    for (const subscription of subscriptions) this.#index.add(plainFilter(subscription), subscription);
  }

  /**
   * Deliver a message to another member. If that member drops it, the drop is reported.
   * @returns false if there is no other member or the message does not clearly belong to a group
   */
  give(message: Message, member = this.choose(message)): boolean {
    member?.subscriber.deliver(message, member, false, true);
    return member !== undefined;
  }

  /** Choose the member that receives a message. */
  choose(message: Message): Subscription | undefined {
    const { topic } = message;
    const matching: Subscription[] = [];
    this.#index.match(topic, matching);
    const [one, another] = matching.filter((each) => mayReach(this.#mountpoint, plainFilter(each), topic));
    return one === undefined || another !== undefined ? undefined : this.#groupOf(one)?.choose(message);
  }
}

/**
 * Hands over the messages of a session in the store.
 *
 * The session stays in the store, with a session expiry of 0, until all messages are handed over. If the process ends first, the next start
 * continues. A message moves from the old queue to the new one in one commit. A QoS 2 message for a member without persisted state is removed
 * from the old queue before it is sent, because it must not be sent twice.
 */
export class StoredHandOver {
  readonly #services: Services;
  readonly #routing: Routing;
  readonly #ledger: Ledger;
  readonly #session: Session;
  readonly #log: SessionLog;
  readonly #position: HandOverPosition;
  readonly #handOver: HandOver;
  readonly #reason: DropReason;
  /** Number of consecutive failures without a successful record in between. */
  #failures = 0;

  constructor(
    services: Services,
    routing: Routing,
    ledger: Ledger,
    session: Session,
    log: SessionLog,
    handOver: HandOver,
    reason: DropReason
  ) {
    this.#services = services;
    this.#routing = routing;
    this.#ledger = ledger;
    this.#session = session;
    this.#log = log;
    this.#handOver = handOver;
    this.#reason = reason;
    this.#position = log.beginHandOver();
  }

  /**
   * @param mayContinue called before each record
   * @returns whether all messages are handed over
   * @throws the errors of the store
   */
  async run(mayContinue: () => Promise<boolean>): Promise<boolean> {
    const { work } = this.#services;
    while (await mayContinue()) {
      await this.#committed();
      if (!this.#services.life.isRunning) return false;
      work.begin();
      try {
        const page = await this.#session.outlet.ensureQueue().nextToHandOver(this.#position);
        if (page === undefined) return true;
        await this.#giveAll(page);
        this.#failures = 0;
      } catch (error) {
        this.#position.from = this.#position.last; // what is not done is returned again
        throw error;
      } finally {
        work.end();
      }
    }
    return false;
  }

  /** Count an attempt that has failed. @returns the number of consecutive failures before it */
  failed(): number {
    return this.#failures++;
  }

  async #giveAll(page: readonly PersistedMessage[]): Promise<void> {
    const log = this.#log;
    let taken: (readonly [Message, Subscription])[] = [];
    const sendTaken = async () => {
      const messages = taken;
      taken = [];
      await this.#committed();
      for (const [message, member] of messages) this.#give(message, this.#isStillMember(member) ? member : undefined);
    };
    for (let at = 0; at < page.length; ) {
      const record = page[at];
      const { message } = record;
      if (record.isDone) {
        at++;
        continue;
      }
      // Called once, because a group chooses another member each time.
      const member = this.#handOver.choose(message);
      const flightQos = this.#position.flights.get(record.seq);
      if (message.qos === 2 && flightQos === undefined && member?.subscriber.isPersisted === false) {
        taken.push([message, member]);
      } else {
        if (taken.length > 0) {
          await sendTaken(); // keeps the order; then choose again, because the members may have changed
          continue;
        }
        if (flightQos === undefined) this.#give(message, member);
        else if (flightQos < 2) this.#handOver.give(message, member);
      }
      log.finish(record);
      at++;
    }
    if (taken.length > 0) await sendTaken();
  }

  /** Tell whether a member that was chosen before a commit can still receive the message. */
  #isStillMember(member: Subscription): boolean {
    return member.subscriber.isOnline && this.#routing.isShared(member);
  }

  #give(message: Message, member: Subscription | undefined): void {
    if (!this.#handOver.give(message, member))
      this.#services.announcer.dropped(message, this.#reason, this.#session.client);
  }

  /** Resolves when the changes are committed, by the first attempt or a later one. */
  #committed(): Promise<void> {
    this.#log.flowChanged();
    return new Promise((resolve) => {
      afterCommit(this.#ledger, resolve, this.#ledger.ticket);
    });
  }
}

function plainFilter({ filter }: Subscription): string {
  const shared = parseSharedFilter(filter);
  return typeof shared === 'object' ? shared.filter : filter;
}

/** Hands messages of sessions that have ended to other members of their share groups. */
export class HandOvers implements HandOverPort<Session> {
  readonly #services: Services;
  readonly #routing: Routing;
  /** undefined: there is no store. */
  readonly #ledger: Ledger | undefined;
  /** undefined: there is no store. */
  readonly #stored: StoredHandOvers | undefined;

  constructor(services: Services, routing: Routing, ledger: Ledger | undefined) {
    this.#services = services;
    this.#routing = routing;
    this.#ledger = ledger;
    this.#stored = ledger && new StoredHandOvers(services, ledger);
  }

  giverFor(session: Session): ((message: Message) => boolean) | undefined {
    // During a stop, the other members in memory disconnect as well.
    const handOver = session.lifecycle.ending?.reason === 'server_shutting_down' ? undefined : this.#of(session);
    return handOver && ((message) => handOver.give(message));
  }

  begin(session: Session, reason: DropReason): boolean {
    const { log } = session;
    const ledger = this.#ledger;
    const handOver = log === undefined || log.count === 0 ? undefined : this.#of(session);
    if (log === undefined || handOver === undefined || ledger === undefined) return false;
    const stored = new StoredHandOver(this.#services, this.#routing, ledger, session, log, handOver, reason);
    this.#stored?.add(session, stored);
    return true;
  }

  /** Continue the hand-overs of the sessions in the store, because the broker has started. */
  brokerStarted(): void {
    this.#stored?.begin();
  }

  #of({ subscriptions, client }: Session): HandOver | undefined {
    if (subscriptions.shared === 0) return undefined;
    const groupOf = (subscription: Subscription) => this.#routing.groupOf(subscription);
    return new HandOver(subscriptions.values(), client.mountpoint, groupOf);
  }
}
