// Sources are asked again about the subscriptions that clients have made while there were such sources: of connected
// clients when the answer expires (`aclCacheTtl`), of others when they return. Rules of the broker and hooks come
// first, as for a SUBSCRIBE. A subscription that is refused then delivers nothing until a later answer allows it, or
// is removed (`aclRemoveSubscriptions`). The first question about a returning client that cannot be decided refuses
// the connection.
//
// While sources cannot decide, the last answer holds for one more `aclCacheTtl`. One that was withdrawn holds only
// until they say that they cannot decide; if they say so soon, because they are busy, until they say so again. After
// that the connection of a session that outlives it is closed, so that its messages are queued; a session that ends
// with its connection gets nothing through the subscription. An answer to a question that was asked before the
// withdrawal (`askAgain`) holds only until the next question, which follows at once.

import type { AccessControl } from '../../access/access-control.ts';
import { FunctionTimer } from '../../base/timing-wheel.ts';
import type { Decider } from '../../events/deciders.ts';
import { isThenable } from '../../events/hooks.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Routing } from '../../routing/routing.ts';
import { ASKED_SUBSCRIPTIONS, type Subscription } from '../../routing/subscription.ts';
import type { Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { innerFilter, unmountedFilter } from '../../topics/topic.ts';
import type { Services } from '../services.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import { type FilterDecision, FilterDecisions, RETRY_MS } from './filter-decisions.ts';
import { requestedFilters } from './filter-requests.ts';
import { QuestionPool } from './question-pool.ts';
import { noteRestored, noteWithdrawn } from './right-records.ts';

/** Maximum number of subscriptions that are examined in one turn. */
const AT_ONCE = 100;
/** Maximum number of subscriptions about which sources are deciding at a time. */
const MAX_ASKING = 64;
/** Subscriptions whose answers expire within this time are asked about together, in milliseconds; less if `aclCacheTtl` is short. */
const GRAIN_MS = 1_000;
/**
 * Time in milliseconds within which a source that declares that it cannot decide is considered busy: about an answer that was withdrawn, it
 * is asked once more after the same time.
 */
const SOON_MS = 1_000;
/** Bucket for questions that are due now. */
const NOW = 0;

/** The parts of the broker that `SourceReview` uses. */
interface ReviewHost {
  readonly access: AccessControl;
  readonly sessions: SessionIndex;
  readonly routing: Routing;
  /** Remove a subscription. */
  remove(session: Session, filter: string, decider: Decider | undefined): boolean;
}

/** A question about a subscription. */
interface Question {
  /** The connection of the client; undefined: the client returns. The answer counts only while the client has this connection. */
  readonly connection: object | undefined;
  /** Monotonic time of the question. */
  readonly askedMs: number;
  /**
   * The `SourceReview.epochOf` at the time of the question. undefined: rules have changed since, so that the question must be asked again.
   */
  epoch: number | undefined;
}

/** A subscription about which sources are asked again. */
interface Reviewed {
  readonly session: Session;
  readonly subscription: Subscription;
  /**
   * Time at which sources are to be asked, in grains; `NOW`: it is in the queue; undefined: they are being asked, or the client is away.
   */
  grain: number | undefined;
  /** The question whose answer counts, until it is answered. */
  asked: Question | undefined;
  /** The `SourceReview.epochOf` of the current answer, which is withdrawn if it differs. undefined: there is no answer. */
  epoch: number | undefined;
  /** True if the current answer comes from a source. */
  isFromSource: boolean;
  /** True if a rule has decided: if none does now, there is no answer. */
  isFromRule: boolean;
  /** Monotonic time at which the current answer expires; it is valid for one more `aclCacheTtl` if sources cannot decide. */
  expiresMs: number;
  /** True if sources could not decide when they were asked last. */
  isFailing: boolean;
}

/** The decisions of sources about the subscriptions of a client that returns. */
export interface Judgement {
  /** The session to which the client returns. */
  readonly session: Session;
  /** True if a subscription is refused only because something has failed: the client cannot have the session now. */
  readonly isUndecided: boolean;
  /** Apply the decisions. This may remove subscriptions, so listeners may run. */
  apply(): void;
}

/** Asks sources again about the subscriptions of clients. A `QuestionPool` serves clients that return. */
export class SourceReview {
  readonly #services: Services;
  readonly #host: ReviewHost;
  readonly #decisions: FilterDecisions;
  readonly #pool: QuestionPool;
  readonly #grainMs: number;
  readonly #timer = new FunctionTimer((nowMs) => this.#ring(nowMs));
  readonly #reviewed = new WeakMap<Subscription, Reviewed>();
  /** Subscriptions that become due, by time in grains. */
  readonly #due = new Map<number, Set<Reviewed>>();
  /** Subscriptions about which sources are to be asked now. */
  readonly #queue = new Set<Reviewed>();
  /** Number of times that answers were withdrawn: those of all clients, and of the client of a session. */
  #epoch = 0;
  #epochOfAll = 0;
  readonly #epochs = new WeakMap<Session, number>();
  #asking = 0;
  #isScheduled = false;

  constructor(services: Services, host: ReviewHost) {
    this.#services = services;
    this.#host = host;
    this.#decisions = new FilterDecisions(services, host.access.deciders);
    this.#pool = new QuestionPool(services.turn);
    this.#grainMs = Math.max(1, Math.min(GRAIN_MS, services.settings.aclCacheTtl / 16));
  }

  /** A value that changes when the answers about a client are withdrawn: those to earlier questions are outdated. */
  epochOf(session: Session): number {
    return Math.max(this.#epochs.get(session) ?? 0, this.#epochOfAll);
  }

  /**
   * Note that a client has subscribed.
   * @param epoch the `epochOf` the session when the decision started; undefined: the app has subscribed for the client
   */
  note(session: Session, subscription: Subscription, decision: FilterDecision, epoch: number | undefined): void {
    this.#accept(session, subscription);
    this.forget(subscription);
    const { dueMs, isFromSource = false } = decision;
    const { hooks, time, settings } = this.#services;
    if (epoch === undefined || (dueMs === undefined && !hooks.asksForSubscriptions)) {
      ASKED_SUBSCRIPTIONS.delete(subscription);
      return;
    }
    ASKED_SUBSCRIPTIONS.add(subscription);
    if (session.client.isSuperuser) return; // until it is no longer a superuser
    const expiresMs = dueMs ?? time.nowMs + settings.aclCacheTtl;
    this.#inForce(this.#of(session, subscription), isFromSource, expiresMs, epoch);
  }

  /** Set the current answer. @param epoch when the question was asked */
  #inForce(reviewed: Reviewed, isFromSource: boolean, expiresMs: number, epoch: number | undefined): void {
    reviewed.epoch = epoch;
    reviewed.isFromSource = isFromSource;
    reviewed.isFromRule = this.#ruled(reviewed.session, reviewed.subscription) !== undefined;
    reviewed.expiresMs = expiresMs;
    reviewed.isFailing = false;
    this.#track(reviewed, expiresMs, epoch);
  }

  /** Discard the answers about a subscription that was removed, or was made again. */
  forget(subscription: Subscription): void {
    const reviewed = this.#reviewed.get(subscription);
    if (reviewed === undefined) return;
    this.#place(reviewed, undefined);
    this.#reviewed.delete(subscription);
  }

  /** Ask again, because sources would answer differently now. @param clientId undefined: about all clients */
  askAgain(clientId: string | undefined): void {
    this.#epoch++;
    if (clientId === undefined) {
      this.#epochOfAll = this.#epoch;
      for (const grain of [...this.#due.keys()]) this.#enqueue(grain);
    } else {
      const session = this.#host.sessions.get(clientId);
      if (session === undefined) return;
      this.#epochs.set(session, this.#epoch);
      for (const subscription of session.subscriptions.values()) {
        if (!ASKED_SUBSCRIPTIONS.has(subscription)) continue;
        const reviewed = this.#of(session, subscription);
        if (!isBeingAsked(reviewed)) this.#place(reviewed, NOW); // otherwise, the next question follows the answer
      }
    }
    this.#schedule();
  }

  /**
   * Ask at once after a change of rules, if no rule decides about a subscription, or it is refused, unless a source has allowed it.
   * @returns whether the answer that follows decides; until then the subscription is unchanged
   */
  askNow(session: Session, subscription: Subscription): boolean {
    const isAsked = ASKED_SUBSCRIPTIONS.has(subscription) && this.#isOpen(subscription);
    if (!isAsked || session.connection === undefined) return false; // asked when the client returns
    const reviewed = this.#of(session, subscription);
    if (reviewed.isFromSource && !this.#host.access.deliveryRights.isRefused(subscription)) return false;
    if (reviewed.isFromRule) reviewed.epoch = undefined;
    if (isBeingAsked(reviewed)) reviewed.asked.epoch = undefined;
    else this.#place(reviewed, NOW);
    this.#schedule();
    return true;
  }

  /**
   * Ask about the subscriptions of a client that returns to its session, before anything is delivered.
   * @param client with the properties of the new connection
   * @param isWaiting whether the client still waits
   * @returns what to do when the client gets the session; undefined: nothing
   */
  judge(session: Session, client: SessionClient, isWaiting: () => boolean): Judgement | Promise<Judgement> | undefined {
    if (client.isSuperuser) return undefined;
    const known = [...session.subscriptions.values()].filter((each) => ASKED_SUBSCRIPTIONS.has(each));
    if (known.length === 0) return undefined;
    const results = new Map<Subscription, FilterDecision>();
    const askedMs = this.#services.time.nowMs;
    const question: Question = { connection: undefined, askedMs, epoch: this.epochOf(session) };
    const isOutdated = () => question.epoch !== this.epochOf(session);
    const judgement = (isDecided: boolean): Judgement => ({
      session,
      get isUndecided() {
        return !isDecided || isOutdated();
      },
      apply: () => this.#judged(session, results, question)
    });
    const take = (subscription: Subscription, decision: FilterDecision) => {
      results.set(subscription, decision);
      return !decision.isFailure || decision.code < 0x80;
    };
    const questions = known
      .filter((subscription) => this.#isOpen(subscription))
      .map((subscription) => () => {
        const decision = this.#ask(session, client, subscription);
        return isThenable(decision)
          ? decision.then((value) => take(subscription, value))
          : take(subscription, decision);
      });
    return questions.length === 0 ? judgement(true) : this.#pool.ask(questions, isWaiting).then(judgement);
  }

  #judged(session: Session, results: Map<Subscription, FilterDecision>, question: Question): void {
    for (const subscription of [...session.subscriptions.values()]) {
      if (!ASKED_SUBSCRIPTIONS.has(subscription)) continue;
      const reviewed = this.#of(session, subscription);
      reviewed.asked = undefined;
      reviewed.epoch = undefined; // the answers were about the previous connection
      reviewed.isFailing = false;
      if (results.has(subscription)) this.#apply(reviewed, results.get(subscription), question);
      else this.#place(reviewed, NOW); // there are no sources, or it was made in the meantime, through the previous connection
    }
    this.#schedule();
  }

  /** Stop asking, because the broker has stopped. */
  stop(): void {
    this.#due.clear();
    this.#queue.clear();
  }

  // ------------------------------------------------------------------------------------------------------------------ timing

  #of(session: Session, subscription: Subscription): Reviewed {
    const known = this.#reviewed.get(subscription);
    if (known !== undefined) return known;
    const reviewed: Reviewed = {
      session,
      subscription,
      grain: undefined,
      asked: undefined,
      epoch: undefined,
      isFromSource: false,
      isFromRule: false,
      expiresMs: 0,
      isFailing: false
    };
    this.#reviewed.set(subscription, reviewed);
    return reviewed;
  }

  /** @param epoch of the answer */
  #track(reviewed: Reviewed, dueMs: number, epoch: number | undefined): void {
    if (!isCurrent(reviewed)) return; // a listener has removed it
    if (epoch === this.epochOf(reviewed.session)) this.#place(reviewed, Math.ceil(dueMs / this.#grainMs));
    else {
      this.#place(reviewed, NOW);
      this.#schedule();
    }
  }

  /** Change the time at which sources are asked about a subscription. */
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
    const { time, settings } = this.#services;
    const question: Question = { connection, askedMs: time.nowMs, epoch: this.epochOf(session) };
    if (!this.#isOpen(subscription)) {
      this.#track(reviewed, time.nowMs + settings.aclCacheTtl, question.epoch);
      return;
    }
    reviewed.asked = question;
    const act = (decision: FilterDecision | undefined) => {
      if (reviewed.asked !== question || this.#reviewed.get(subscription) !== reviewed) return;
      reviewed.asked = undefined;
      if (session.connection === connection) this.#apply(reviewed, client.isSuperuser ? undefined : decision, question); // the client may be a superuser by now
    };
    const decision = client.isSuperuser ? undefined : this.#ask(session, client, subscription);
    if (!isThenable(decision)) {
      act(decision);
      return;
    }
    this.#asking++;
    decision
      .then((value) => {
        time.read(); // this can be the answer of a server, which arrives at any time
        act(value);
      })
      .catch((error: unknown) => session.failInternally(error, 'asking about a subscription again', connection))
      .finally(() => {
        this.#asking--;
        this.#schedule();
      });
  }

  /** Tell whether to authorize again: there is a source, or a source that refused has been removed. */
  #isOpen(subscription: Subscription): boolean {
    return this.#services.hooks.asksForSubscriptions || this.#host.access.deliveryRights.isRefused(subscription);
  }

  /** @param client with the properties of the connection for which the answer counts */
  #ask(session: Session, client: SessionClient, subscription: Subscription): FilterDecision | Promise<FilterDecision> {
    const { qos, noLocal, retainAsPublished, retainHandling, subscriptionIds } = subscription;
    const options = { qos, noLocal, retainAsPublished, retainHandling, id: subscriptionIds?.[0] };
    const filter = unmountedFilter(subscription.filter, client.mountpoint);
    const names = requestedFilters(session, subscription.filter);
    return this.#decisions.again(filter, names, { client, options, verdicts: undefined, check: () => 0 });
  }

  /** @param decision undefined: only its first answer decides about the subscription */
  #apply(reviewed: Reviewed, decision: FilterDecision | undefined, question: Question): void {
    if (!isCurrent(reviewed)) return;
    const { session, subscription } = reviewed;
    const { time, settings } = this.#services;
    if (decision?.isFailure) {
      this.#applyFailure(reviewed, decision, question);
      return;
    }
    // an answer that was withdrawn in the meantime may withhold messages, but neither restores nor removes: the next question follows at
    // once
    const isOutdated = question.epoch !== this.epochOf(session);
    const isAllowed = decision === undefined || decision.code < 0x80;
    if (isAllowed && isOutdated && decision !== undefined && this.#host.access.deliveryRights.isRefused(subscription)) {
      this.#track(reviewed, time.nowMs, question.epoch);
      return;
    }
    if (isAllowed) this.#accept(session, subscription);
    else if (settings.aclRemoveSubscriptions && !isOutdated && !hasQueue(session)) {
      this.#host.remove(session, subscription.filter, decision?.decider);
      return;
    } else this.#refuse(subscription, decision?.decider);
    this.#inForce(reviewed, decision?.isFromSource === true, time.nowMs + settings.aclCacheTtl, question.epoch);
  }

  /** Apply a failure of sources to decide. What they have refused stays refused, and what other parties allow is unchanged. */
  #applyFailure(reviewed: Reviewed, { code, decider }: FilterDecision, { epoch, askedMs }: Question): void {
    const { session, subscription } = reviewed;
    const { time, settings } = this.#services;
    const { nowMs } = time;
    const { aclCacheTtl } = settings;
    const isRepeated = reviewed.isFailing;
    reviewed.isFailing = true;
    const current = this.epochOf(session);
    const isHeld = reviewed.epoch === current && nowMs < reviewed.expiresMs + aclCacheTtl;
    const { deliveryRights } = this.#host.access;
    const isWithheld = deliveryRights.isRefused(subscription) && deliveryRights.isRevoked(subscription);
    let retryMs = RETRY_MS;
    if (code >= 0x80 && !isHeld && !isWithheld && (epoch === current || isRepeated)) {
      const isBusy = nowMs - askedMs < SOON_MS; // and has not exceeded its time
      if (isBusy && !isRepeated && reviewed.epoch !== current) retryMs = SOON_MS;
      else if (session.client.isPersistent) {
        session.lifecycle.close('source_failed', { reasonCode: ReasonCode.serverBusy }); // DISCONNECT cannot carry 0x88
        return;
      } else this.#refuse(subscription, decider);
    }
    this.#track(reviewed, nowMs + Math.min(aclCacheTtl, retryMs), epoch);
  }

  #refuse(subscription: Subscription, decider: Decider | undefined): void {
    const { access, routing } = this.#host;
    if (!access.deliveryRights.refuse(subscription)) return;
    noteWithdrawn(this.#services, subscription, decider);
    routing.changed(subscription.filter);
  }

  #ruled({ client }: Session, subscription: Subscription): boolean | undefined {
    const filter = innerFilter(unmountedFilter(subscription.filter, client.mountpoint));
    return this.#host.access.rules.decideFilter(client, filter);
  }

  /** Deliver through a subscription that is not refused, unless rules have changed since the question. */
  #accept(session: Session, subscription: Subscription): void {
    const { access, routing } = this.#host;
    const { deliveryRights } = access;
    deliveryRights.accept(subscription);
    if (!deliveryRights.isRevoked(subscription)) return;
    if (!session.client.isSuperuser && this.#ruled(session, subscription) === false) return;
    deliveryRights.restore(subscription);
    noteRestored(this.#services, subscription);
    routing.changed(subscription.filter);
  }
}

function isCurrent({ session: { subscriptions, state }, subscription }: Reviewed): boolean {
  return state !== 'gone' && subscriptions.get(subscription.filter) === subscription;
}

/** Tell whether sources are being asked about the client with its current connection. */
function isBeingAsked(reviewed: Reviewed): reviewed is Reviewed & { asked: Question } {
  return reviewed.asked !== undefined && reviewed.asked.connection === reviewed.session.connection;
}

/** Tell whether messages wait for the client. If so, subscriptions must stay: a revoked subscription withholds its messages. */
export function hasQueue({ outlet, log }: Session): boolean {
  return (outlet.queue?.length ?? 0) > 0 || (log !== undefined && !log.isCaughtUp);
}
