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

/** The parts of the broker that `SourceReview` uses. */
interface ReviewHost {
  readonly access: AccessControl;
  readonly sessions: SessionIndex;
  readonly routing: Routing;
  /** Remove a subscription. */
  remove(session: Session, filter: string): boolean;
}

/** A subscription that has to be asked about. */
interface Due {
  readonly session: Session;
  readonly subscription: Subscription;
  /** The time, in grains; other entries of the subscription are void. */
  readonly grain: number;
}

/** What was decided about a subscription. */
type Result = readonly [Subscription, FilterDecision | undefined];

/**
 * Asks sources again about the subscriptions that they have allowed: of connected clients when the answer expires (`aclCacheTtl`), of others
 * when they return. Through a subscription that is refused then, nothing is delivered until a later answer allows it; or it is removed
 * (`aclRemoveSubscriptions`). One timer and a bounded number of questions at a time serve all subscriptions.
 */
export class SourceReview {
  readonly #services: Services;
  readonly #host: ReviewHost;
  readonly #decisions: FilterDecisions;
  readonly #grainMs: number;
  readonly #timer = new FunctionTimer((nowMs) => this.#ring(nowMs));
  /** What becomes due, by time in grains. */
  readonly #due = new Map<number, Due[]>();
  readonly #grainOf = new WeakMap<Subscription, number>();
  /** Subscriptions that were refused when they were asked about again. */
  readonly #refused = new WeakSet<Subscription>();
  /** What is to be asked about now. */
  #queue: Due[] = [];
  #asking = 0;
  #isScheduled = false;

  constructor(services: Services, host: ReviewHost) {
    this.#services = services;
    this.#host = host;
    this.#decisions = new FilterDecisions(services);
    this.#grainMs = Math.max(1, Math.min(GRAIN_MS, services.settings.aclCacheTtl / 16));
  }

  /** A client has subscribed. @param dueMs see `FilterDecision` */
  decided(session: Session, subscription: Subscription, dueMs: number | undefined): void {
    this.#restore(subscription);
    if (dueMs === undefined) ASKED_SUBSCRIPTIONS.delete(subscription);
    else {
      ASKED_SUBSCRIPTIONS.add(subscription);
      this.#track(session, subscription, dueMs);
    }
  }

  /** Tell whether the last answer about a subscription has refused it. */
  refuses(subscription: Subscription): boolean {
    return this.#refused.has(subscription);
  }

  /** Sources would answer differently now: ask again. @param clientId undefined: about all clients */
  changed(clientId: string | undefined): void {
    const session = clientId === undefined ? undefined : this.#host.sessions.get(clientId);
    if (session !== undefined)
      for (const subscription of session.subscriptions.values()) {
        if (ASKED_SUBSCRIPTIONS.has(subscription)) this.#askSoon(session, subscription);
      }
    if (clientId === undefined) {
      const all = [...this.#due.values()].flat();
      this.#due.clear();
      for (const { session, subscription, grain } of all)
        if (this.#grainOf.get(subscription) === grain) this.#askSoon(session, subscription);
    }
    this.#schedule();
  }

  #askSoon(session: Session, subscription: Subscription): void {
    this.#grainOf.set(subscription, 0);
    this.#queue.push({ session, subscription, grain: 0 });
  }

  /**
   * A client returns to its session: ask about the subscriptions, before anything is delivered.
   * @param client with the properties of the new connection
   * @param isWaiting whether the connection still waits for the answers; otherwise the questions were aborted
   * @returns undefined if there is nothing to wait for
   */
  judge(session: Session, client: SessionClient, isWaiting: () => boolean): Promise<void> | undefined {
    const { hooks } = this.#services;
    if (client.isSuperuser || !hooks.asksForSubscriptions) return undefined;
    const asked = [...session.subscriptions.values()].filter((each) => ASKED_SUBSCRIPTIONS.has(each));
    if (asked.length === 0) return undefined;
    const results: Result[] = [];
    const apply = () => {
      if (isWaiting()) for (const [subscription, decision] of results) this.#apply(session, subscription, decision);
    };
    const next = (from: number): void | Promise<void> => {
      if (from >= asked.length) return undefined;
      const answers = asked.slice(from, from + MAX_ASKING).map((subscription): Result | Promise<Result> => {
        const decision = this.#ask(client, subscription);
        return isThenable(decision) ? decision.then((value) => [subscription, value]) : [subscription, decision];
      });
      if (from + MAX_ASKING >= asked.length && !answers.some((answer) => answer instanceof Promise)) {
        results.push(...(answers as Result[]));
        return undefined;
      }
      return Promise.all(answers)
        .then((some) => results.push(...some))
        .then(() => this.#nextTurn())
        .then(() => next(from + MAX_ASKING));
    };
    const done = next(0);
    if (done !== undefined) return done.then(apply);
    apply();
    return undefined;
  }

  /** The broker has stopped. */
  stop(): void {
    this.#due.clear();
    this.#queue = [];
  }

  // ------------------------------------------------------------------------------------------------------------------ timing

  #track(session: Session, subscription: Subscription, dueMs: number): void {
    const grain = Math.ceil(dueMs / this.#grainMs);
    if (this.#grainOf.get(subscription) === grain) return;
    this.#grainOf.set(subscription, grain);
    const due = { session, subscription, grain };
    const others = this.#due.get(grain);
    if (others !== undefined) others.push(due);
    else {
      this.#due.set(grain, [due]);
      if (this.#timer.dueMs > grain * this.#grainMs) this.#arm(grain);
    }
  }

  #arm(grain: number): void {
    this.#services.wheel.armAt(this.#timer, grain * this.#grainMs);
  }

  #ring(nowMs: number): void {
    let first = Infinity;
    for (const [grain, due] of this.#due) {
      if (grain * this.#grainMs > nowMs) first = Math.min(first, grain);
      else {
        this.#due.delete(grain);
        for (const one of due) this.#queue.push(one);
      }
    }
    if (first < Infinity) this.#arm(first);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    this.#services.turn.later(() => this.#continue());
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#services.turn.later(resolve));
  }

  #continue(): void {
    this.#isScheduled = false;
    this.#services.time.read();
    const count = Math.min(AT_ONCE, MAX_ASKING - this.#asking);
    if (count <= 0) return; // an answer continues
    for (const due of this.#queue.splice(0, count)) this.#askAgain(due);
    this.#schedule();
  }

  // ------------------------------------------------------------------------------------------------------------------ asking

  #askAgain({ session, subscription, grain }: Due): void {
    const { connection, client } = session;
    if (this.#grainOf.get(subscription) !== grain) return;
    this.#grainOf.delete(subscription);
    if (connection === undefined || !isCurrent(session, subscription)) return;
    const act = (decision: FilterDecision | undefined) => {
      if (session.connection === connection) this.#apply(session, subscription, decision);
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

  /** @param decision undefined: nothing but its first answer decides about the subscription */
  #apply(session: Session, subscription: Subscription, decision: FilterDecision | undefined): void {
    if (!isCurrent(session, subscription)) return;
    const { time, settings } = this.#services;
    if (decision === undefined || decision.code < 0x80) this.#restore(subscription);
    else if (settings.aclRemoveSubscriptions && decision.isFailure !== true && !hasQueue(session)) {
      this.#host.remove(session, subscription.filter);
      return;
    } else this.#revoke(subscription);
    this.#track(session, subscription, time.nowMs + settings.aclCacheTtl);
  }

  #revoke(subscription: Subscription): void {
    const { access, routing } = this.#host;
    if (this.#refused.has(subscription)) return;
    this.#refused.add(subscription);
    access.deliveryRights.revoke(subscription);
    routing.changed(subscription.filter);
  }

  #restore(subscription: Subscription): void {
    const { access, routing } = this.#host;
    if (!this.#refused.delete(subscription)) return;
    access.deliveryRights.restore(subscription);
    routing.changed(subscription.filter);
  }
}

function isCurrent({ subscriptions, state }: Session, subscription: Subscription): boolean {
  return state !== 'gone' && subscriptions.get(subscription.filter) === subscription;
}

/** Whether messages wait for the client: they are not delivered as long as the subscription is there and refused. */
function hasQueue({ delivery, log }: Session): boolean {
  return (delivery.waiting?.backlog?.length ?? 0) > 0 || (log !== undefined && !log.messages.isCaughtUp);
}
