import type { AccessControl } from '../access/access-control.ts';
import { FunctionTimer } from '../base/timing-wheel.ts';
import { isThenable } from '../events/hooks.ts';
import type { Routing } from '../routing/routing.ts';
import { ASKED_SUBSCRIPTIONS, type Subscription } from '../routing/subscription.ts';
import type { Session } from '../session/session.ts';
import type { SessionClient } from '../session/session-client.ts';
import { unmountedFilter } from '../topics/topic.ts';
import { type FilterDecision, FilterDecisions } from './filter-decisions.ts';
import type { Services } from './services.ts';
import type { SessionIndex } from './session-index.ts';

/** Most subscriptions that are looked at in one turn. */
const AT_ONCE = 100;
/** Most subscriptions about which sources are deciding at a time. */
const MAX_ASKING = 64;
/** Subscriptions whose answers expire within this time are asked about together, in milliseconds; less if `aclCacheTtl` is short. */
const GRAIN_MS = 1_000;
/** The time of what is to be asked about now, in grains. */
const NOW = 0;

/** The parts of the broker that `SourceReview` uses. */
interface ReviewHost {
  readonly access: AccessControl;
  readonly sessions: SessionIndex;
  readonly routing: Routing;
  /** Remove a subscription. */
  remove(session: Session, filter: string): boolean;
}

/** A subscription that a source has allowed. */
interface Reviewed {
  readonly session: Session;
  readonly subscription: Subscription;
  /** When sources are to be asked, in grains; `NOW`: it is in the queue; undefined: they are being asked, or the client is away. */
  grain: number | undefined;
  /** The number of questions so far: only the answer to the last one counts. */
  questions: number;
}

/** What sources have decided about the subscriptions of a client that returns. */
export interface Judgement {
  /** The session to which the client returns. */
  readonly session: Session;
  /** Put it into effect. It may remove subscriptions, so listeners may run. */
  apply(): void;
}

/**
 * Asks sources again about the subscriptions that they have allowed: of connected clients when the answer expires (`aclCacheTtl`), of others
 * when they return. Through a subscription that is refused then, nothing is delivered until a later answer allows it; or it is removed
 * (`aclRemoveSubscriptions`). One timer and a bounded number of questions at a time serve all subscriptions of connected clients. For a
 * client that returns the number is bounded for each client, so that one whose source is slow does not keep others from connecting.
 *
 * An answer that was asked for before the answers were withdrawn (`askAgain`) is in force only until the next question, which follows at
 * once.
 */
export class SourceReview {
  readonly #services: Services;
  readonly #host: ReviewHost;
  readonly #decisions: FilterDecisions;
  readonly #grainMs: number;
  readonly #timer = new FunctionTimer((nowMs) => this.#ring(nowMs));
  readonly #reviewed = new WeakMap<Subscription, Reviewed>();
  /** What becomes due, by time in grains. */
  readonly #due = new Map<number, Set<Reviewed>>();
  /** What is to be asked about now. */
  readonly #queue = new Set<Reviewed>();
  /** How often answers were withdrawn: those of all clients, and of the client of a session. */
  #epoch = 0;
  #epochOfAll = 0;
  readonly #epochs = new WeakMap<Session, number>();
  #asking = 0;
  #isScheduled = false;

  constructor(services: Services, host: ReviewHost) {
    this.#services = services;
    this.#host = host;
    this.#decisions = new FilterDecisions(services);
    this.#grainMs = Math.max(1, Math.min(GRAIN_MS, services.settings.aclCacheTtl / 16));
  }

  /** Changes when the answers about a client are withdrawn: those to earlier questions are outdated. */
  epochOf(session: Session): number {
    return Math.max(this.#epochs.get(session) ?? 0, this.#epochOfAll);
  }

  /**
   * A client has subscribed.
   * @param dueMs see `FilterDecision`
   * @param epoch the `epochOf` the session when the decision began
   */
  note(session: Session, subscription: Subscription, dueMs: number | undefined, epoch: number): void {
    this.#accept(subscription);
    this.forget(subscription);
    if (dueMs === undefined) ASKED_SUBSCRIPTIONS.delete(subscription);
    else {
      ASKED_SUBSCRIPTIONS.add(subscription);
      this.#track(this.#of(session, subscription), dueMs, epoch);
    }
  }

  /** A subscription was removed, or was made anew: what was asked about it no longer counts. */
  forget(subscription: Subscription): void {
    const reviewed = this.#reviewed.get(subscription);
    if (reviewed === undefined) return;
    this.#place(reviewed, undefined);
    this.#reviewed.delete(subscription);
  }

  /** Sources would answer differently now: ask again. @param clientId undefined: about all clients */
  askAgain(clientId: string | undefined): void {
    this.#epoch++;
    if (clientId === undefined) {
      this.#epochOfAll = this.#epoch;
      for (const grain of [...this.#due.keys()]) this.#enqueue(grain);
    } else {
      const session = this.#host.sessions.get(clientId);
      if (session === undefined) return;
      this.#epochs.set(session, this.#epoch);
      for (const subscription of session.subscriptions.values())
        if (ASKED_SUBSCRIPTIONS.has(subscription)) this.#place(this.#of(session, subscription), NOW);
    }
    this.#schedule();
  }

  /**
   * A client returns to its session: ask about the subscriptions, before anything is delivered.
   * @param client with the properties of the new connection
   * @returns what to do when the client gets the session; undefined: nothing
   */
  judge(session: Session, client: SessionClient): Judgement | Promise<Judgement> | undefined {
    const { hooks } = this.#services;
    if (client.isSuperuser || !hooks.asksForSubscriptions) return undefined;
    const asked = [...session.subscriptions.values()].filter((each) => ASKED_SUBSCRIPTIONS.has(each));
    if (asked.length === 0) return undefined;
    const epoch = this.epochOf(session);
    const results = new Map<Subscription, FilterDecision | undefined>();
    const next = (from: number): void | Promise<void> => {
      if (from >= asked.length) return undefined;
      const answers = asked.slice(from, from + MAX_ASKING).map((subscription) => {
        const decision = this.#ask(client, subscription);
        if (isThenable(decision)) return decision.then((value) => void results.set(subscription, value));
        results.set(subscription, decision);
        return undefined;
      });
      if (from + MAX_ASKING >= asked.length && answers.every((answer) => answer === undefined)) return undefined;
      return Promise.all(answers)
        .then(() => this.#nextTurn())
        .then(() => next(from + MAX_ASKING));
    };
    const judgement = { session, apply: () => this.#judged(session, results, epoch) };
    return next(0)?.then(() => judgement) ?? judgement;
  }

  #judged(session: Session, results: Map<Subscription, FilterDecision | undefined>, epoch: number): void {
    for (const subscription of [...session.subscriptions.values()]) {
      if (!ASKED_SUBSCRIPTIONS.has(subscription)) continue;
      const reviewed = this.#of(session, subscription);
      reviewed.questions++;
      if (results.has(subscription)) this.#apply(reviewed, results.get(subscription), epoch);
      else this.#place(reviewed, NOW); // made meanwhile, through the previous connection
    }
    this.#schedule();
  }

  /** The broker has stopped. */
  stop(): void {
    this.#due.clear();
    this.#queue.clear();
  }

  // ------------------------------------------------------------------------------------------------------------------ timing

  #of(session: Session, subscription: Subscription): Reviewed {
    const known = this.#reviewed.get(subscription);
    if (known !== undefined) return known;
    const reviewed = { session, subscription, grain: undefined, questions: 0 };
    this.#reviewed.set(subscription, reviewed);
    return reviewed;
  }

  /** @param epoch of the answer */
  #track(reviewed: Reviewed, dueMs: number, epoch: number): void {
    if (!isCurrent(reviewed)) return; // a listener has removed it
    if (epoch === this.epochOf(reviewed.session)) this.#place(reviewed, Math.ceil(dueMs / this.#grainMs));
    else {
      this.#place(reviewed, NOW);
      this.#schedule();
    }
  }

  /** Change when sources are asked about a subscription. */
  #place(reviewed: Reviewed, grain: number | undefined): void {
    const before = reviewed.grain;
    if (before === grain) return;
    reviewed.grain = grain;
    if (before === NOW) this.#queue.delete(reviewed);
    else if (before !== undefined) {
      const others = this.#due.get(before);
      if (others?.delete(reviewed) && others.size === 0) this.#due.delete(before);
    }
    if (grain === NOW) this.#queue.add(reviewed);
    else if (grain !== undefined) this.#dueAt(grain).add(reviewed);
  }

  #dueAt(grain: number): Set<Reviewed> {
    const known = this.#due.get(grain);
    if (known !== undefined) return known;
    const due = new Set<Reviewed>();
    this.#due.set(grain, due);
    if (this.#timer.dueMs > grain * this.#grainMs) this.#arm(grain);
    return due;
  }

  #enqueue(grain: number): void {
    const due = this.#due.get(grain) ?? [];
    this.#due.delete(grain);
    for (const reviewed of due) {
      reviewed.grain = NOW;
      this.#queue.add(reviewed);
    }
  }

  #arm(grain: number): void {
    this.#services.wheel.armAt(this.#timer, grain * this.#grainMs);
  }

  #ring(nowMs: number): void {
    let first = Infinity;
    for (const grain of [...this.#due.keys()]) {
      if (grain * this.#grainMs > nowMs) first = Math.min(first, grain);
      else this.#enqueue(grain);
    }
    if (first < Infinity) this.#arm(first);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.size === 0) return;
    this.#isScheduled = true;
    this.#services.turn.later(() => this.#continue());
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#services.turn.later(resolve));
  }

  #continue(): void {
    this.#isScheduled = false;
    this.#services.time.read();
    let left = Math.min(AT_ONCE, MAX_ASKING - this.#asking);
    if (left <= 0) return; // an answer continues
    for (const reviewed of this.#queue) {
      this.#review(reviewed);
      if (--left === 0) break;
    }
    this.#schedule();
  }

  // ------------------------------------------------------------------------------------------------------------------ asking

  #review(reviewed: Reviewed): void {
    this.#place(reviewed, undefined);
    const { session, subscription } = reviewed;
    const { connection, client } = session;
    if (connection === undefined || !isCurrent(reviewed)) return;
    const question = ++reviewed.questions;
    const epoch = this.epochOf(session);
    const act = (decision: FilterDecision | undefined) => {
      const isLast = reviewed.questions === question && this.#reviewed.get(subscription) === reviewed;
      if (session.connection === connection && isLast) this.#apply(reviewed, decision, epoch);
    };
    const decision = client.isSuperuser ? undefined : this.#ask(client, subscription);
    if (!isThenable(decision)) {
      act(decision);
      return;
    }
    this.#asking++;
    decision
      .then(act)
      .catch((error: unknown) => session.failInternally(error, 'asking about a subscription again', connection))
      .finally(() => {
        this.#asking--;
        this.#schedule();
      });
  }

  #ask(
    client: SessionClient,
    subscription: Subscription
  ): FilterDecision | undefined | Promise<FilterDecision | undefined> {
    const { qos, noLocal, retainAsPublished, retainHandling, ids } = subscription;
    const options = { qos, noLocal, retainAsPublished, retainHandling, id: ids?.[0] };
    const filter = unmountedFilter(subscription.filter, client.mountpoint);
    return this.#decisions.again(filter, { client, options, verdicts: undefined, check: () => 0 });
  }

  /**
   * @param decision undefined: nothing but its first answer decides about the subscription
   * @param epoch when the question was asked
   */
  #apply(reviewed: Reviewed, decision: FilterDecision | undefined, epoch: number): void {
    if (!isCurrent(reviewed)) return;
    const { session, subscription } = reviewed;
    const { time, settings } = this.#services;
    if (decision === undefined || decision.code < 0x80) this.#accept(subscription);
    else if (settings.aclRemoveSubscriptions && decision.isFailure !== true && !hasQueue(session)) {
      this.#host.remove(session, subscription.filter);
      return;
    } else this.#refuse(subscription);
    this.#track(reviewed, decision?.dueMs ?? time.nowMs + settings.aclCacheTtl, epoch);
  }

  #refuse(subscription: Subscription): void {
    const { access, routing } = this.#host;
    if (access.deliveryRights.refuse(subscription)) routing.changed(subscription.filter);
  }

  #accept(subscription: Subscription): void {
    const { access, routing } = this.#host;
    if (access.deliveryRights.accept(subscription)) routing.changed(subscription.filter);
  }
}

function isCurrent({ session: { subscriptions, state }, subscription }: Reviewed): boolean {
  return state !== 'gone' && subscriptions.get(subscription.filter) === subscription;
}

/** Whether messages wait for the client. If so, the subscription must stay: it is what withholds these messages. */
function hasQueue({ delivery, log }: Session): boolean {
  return (delivery.waiting?.backlog?.length ?? 0) > 0 || (log !== undefined && !log.messages.isCaughtUp);
}
