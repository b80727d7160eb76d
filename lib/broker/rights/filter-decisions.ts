// All hooks, rules and sources are asked in their order until one decides. If a hook replaces the filter, all others
// are asked about the new one, and a second replacement is an error. Whether unmatched filters are allowed is read
// before the hooks run, so that the removal of a hook during its decision allows nothing. An answer that failed or is
// undecided is never kept for the connection, and has to be asked for again after `RETRY_MS` if it allows the
// subscription.

import type { Deciders } from '../../access/deciders.ts';
import { BrokerError, InvalidInput } from '../../base/errors.ts';
import type { Verdicts } from '../../connection/verdicts.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import {
  allowsUnmatched,
  type ChangedFilter,
  type Hook,
  isApproval,
  isThenable,
  type Refusal,
  type Verdict
} from '../../events/hooks.ts';
import { Metric } from '../../events/metrics.ts';
import { SubscribeQuestion } from '../../events/questions.ts';
import type { SubscriptionOptions } from '../../events/subscription-options.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { isOfClients } from '../../topics/client-topics.ts';
import { innerFilter } from '../../topics/topic.ts';
import type { Services } from '../services.ts';
import { aclMetric } from './message-hooks.ts';

type Answer = Verdict | number | ChangedFilter;

/** Time after which a hook or a source that could not answer is asked again, in milliseconds; less if `aclCacheTtl` is shorter. */
export const RETRY_MS = 5_000;

/** The answer of a hook that has failed. */
const FAILED: Refusal = { allow: false, reasonCode: ReasonCode.unspecifiedError };

/** The decision on whether a client may subscribe to a topic filter. */
export interface FilterDecision {
  /** The filter to subscribe to: the requested one, or its replacement by a hook. */
  readonly filter: string;
  /** The maximum QoS to grant, or from 0x80 the reason code of the refusal [MQTT-3.9.3-2]. */
  readonly code: number;
  /**
   * Monotonic time at which hooks and sources must be asked again about a subscription that is allowed; undefined: no source that must be
   * asked has allowed it, and this is not a failure.
   */
  readonly dueMs: number | undefined;
  /** True if a source that must be asked has decided: its answer is valid until `dueMs`, regardless of the rules. */
  readonly isFromSource?: boolean;
  /** True if a hook or a source has failed, or has declared that it cannot decide. */
  readonly isFailure?: boolean;
  /** The decider of a refusal. */
  readonly decider?: Decider | undefined;
  /** True if the connection has cached the decision from an earlier question. */
  readonly isCached?: boolean;
}

/** The conditions under which a decision about a filter is made. */
interface FilterQuestion {
  readonly client: SessionClient;
  readonly options: SubscriptionOptions;
  /** The cache of the connection; undefined: nothing is cached. */
  readonly verdicts: Verdicts | undefined;
  /** Check a filter with which a hook has replaced the requested one. @returns 0 or a reason code */
  check(filter: string): number;
}

/** Calls the authorizeSubscribe hooks, which include rules and sources. */
export class FilterDecisions {
  readonly #services: Services;
  readonly #deciders: Deciders;

  constructor(services: Services, deciders: Deciders) {
    this.#services = services;
    this.#deciders = deciders;
  }

  /** Report and return the decision that needs no hook; undefined if hooks must be asked. */
  unasked(client: SessionClient, filter: string): boolean | undefined {
    const { hooks } = this.#services;
    const isGranted = client.isSuperuser || isOfClients(innerFilter(filter)); // the client's own, as it has been checked
    if (!isGranted && hooks.authorizeSubscribe.length > 0) return undefined;
    const isAllowed = isGranted || allowsUnmatched(client, hooks, 'authorizeSubscribe');
    this.announce(client, filter, isAllowed);
    return isAllowed;
  }

  /** Report a decision about a filter of a SUBSCRIBE to its listeners. */
  announce(client: SessionClient, topic: string, isAllowed: boolean, isCached = false): void {
    const { events } = this.#services;
    if (events.heard['client.check_acl_complete'])
      events.emit('client.check_acl_complete', { client, action: 'subscribe', topic, isAllowed, isCached });
  }

  /** Decide about a filter of a SUBSCRIBE. Synchronous if the hooks are. */
  decide(filter: string, asked: FilterQuestion): FilterDecision | Promise<FilterDecision> {
    const { hooks, metrics, settings, time } = this.#services;
    const { options, verdicts } = asked;
    const { nowMs } = time;
    const known = verdicts?.get('subscribe', filter, nowMs);
    if (known !== undefined) {
      const { code, decider } = known;
      const isExpiring = code === 0 && hooks.asksForSubscriptions; // the source may have decided
      return {
        filter,
        code: code === 0 ? options.qos : code,
        dueMs: isExpiring ? verdicts?.dueMs('subscribe', filter) : undefined,
        decider,
        isCached: true
      };
    }
    metrics.counts[Metric.clientCheckAcl]++;
    return this.#ask(filter, asked, hooks.authorizeSubscribe, (answer, question, isAllowed) => {
      if (isChanged(answer) && answer.filter !== filter) return this.#askAboutChange(answer, question.asked, asked);
      const decision = this.#decisionOf(filter, answer ?? isAllowed, question, asked, answer);
      const { code, isFailure, decider } = decision;
      if (isFailure) return decision;
      if (code >= 0x80 || (isApproval(answer ?? isAllowed) && !isChanged(answer)))
        verdicts?.set('subscribe', filter, code >= 0x80 ? code : 0, nowMs, decider);
      return decision.dueMs === undefined ? decision : { ...decision, dueMs: nowMs + settings.aclCacheTtl };
    });
  }

  /**
   * Decide again about a subscription.
   * @param names the filters by which the client has requested it, if a hook has changed them. All hooks are asked about the filter of the
   * subscription. If one changes it, or if none decides, they are asked about the names, and allow the subscription if one of them would
   * still replace a name with the filter.
   */
  again(
    filter: string,
    names: readonly string[] | undefined,
    asked: FilterQuestion
  ): FilterDecision | Promise<FilterDecision> {
    return this.#again(filter, names ?? [], asked, this.#services.hooks.authorizeSubscribe, undefined);
  }

  /** @param hasChanged whether the hooks that change the filter allow it, unless others refuse it; undefined: no hook changes it */
  #again(
    filter: string,
    names: readonly string[],
    asked: FilterQuestion,
    left: readonly Hook<'authorizeSubscribe'>[],
    hasChanged: boolean | undefined
  ): FilterDecision | Promise<FilterDecision> {
    return this.#ask(filter, asked, left, (answer, question, isAllowed) => {
      if (!isChanged(answer)) {
        const decide = (given: boolean) => this.#decisionOf(filter, answer ?? given, question, asked, answer);
        if (answer !== undefined || hasChanged !== undefined || question.isUndecided)
          return decide(hasChanged ?? isAllowed);
        return this.#askAboutNames(filter, names, asked, left, (isApproved) => decide(isApproved || isAllowed));
      }
      const changing = left.filter((hook) => hook === question.asked);
      const others = left.filter((hook) => hook !== question.asked);
      const goOn = (isApproved: boolean) => this.#again(filter, names, asked, others, isApproved);
      if (answer.filter === filter) return goOn(hasChanged !== false);
      return this.#askAboutNames(filter, names, asked, changing, goOn);
    });
  }

  /** Let hooks that may change filters decide about the names of a subscription, one after the other, until they allow one. */
  #askAboutNames(
    filter: string,
    [name, ...names]: readonly string[],
    asked: FilterQuestion,
    changing: readonly Hook<'authorizeSubscribe'>[],
    goOn: (isApproved: boolean) => FilterDecision | Promise<FilterDecision>
  ): FilterDecision | Promise<FilterDecision> {
    if (name === undefined) return goOn(false);
    return this.#ask(name, asked, changing, (answer, question) => {
      if (isChanged(answer) && answer.filter === filter) return goOn(true);
      if (question.isUndecided || answer === FAILED) return this.#decisionOf(filter, FAILED, question, asked, FAILED);
      return this.#askAboutNames(filter, names, asked, changing, goOn);
    });
  }

  /** Ask all other hooks about a filter with which a hook has replaced the requested one. */
  #askAboutChange(
    { filter, qos = 2 }: ChangedFilter,
    decider: object | undefined,
    asked: FilterQuestion
  ): FilterDecision | Promise<FilterDecision> {
    const { announcer, hooks } = this.#services;
    const { client, options, check } = asked;
    const highest = Math.min(qos, options.qos);
    const fault = check(filter);
    if (fault !== 0) {
      if (fault !== ReasonCode.notAuthorized) {
        const text = `the hook authorizeSubscribe returned the filter ${JSON.stringify(filter)}, which the client cannot subscribe to (0x${fault.toString(16)})`;
        const wrong = new InvalidInput(
          'HOOK_ANSWER_INVALID',
          'filter',
          'a topic filter that the client may use',
          filter,
          text
        );
        announcer.failed(wrong, 'hook authorizeSubscribe', client);
      }
      return { filter, code: fault, dueMs: undefined, decider: this.#deciders.ofFilter(client, filter, fault) };
    }
    const others = hooks.authorizeSubscribe.filter((hook) => hook !== decider);
    return this.#ask(filter, asked, others, (answer, second) => {
      if (isChanged(answer) && answer.filter !== filter) {
        const text = `two authorizeSubscribe hooks have changed a filter: to ${JSON.stringify(filter)}, and then to ${JSON.stringify(answer.filter)}`;
        announcer.failed(new BrokerError('HOOK_ANSWER_INVALID', text), 'hook authorizeSubscribe', client);
        return { filter, code: ReasonCode.unspecifiedError, dueMs: undefined, decider: DECIDERS.hookFailed };
      }
      const decision = this.#decisionOf(filter, answer ?? true, second, asked, answer);
      return decision.code < 0x80 ? { ...decision, code: Math.min(decision.code, highest) } : decision;
    });
  }

  #ask<D>(
    filter: string,
    { client, options }: FilterQuestion,
    functions: readonly Hook<'authorizeSubscribe'>[],
    act: (answer: Answer | undefined, question: SubscribeQuestion, isAllowed: boolean) => D | Promise<D>
  ): D | Promise<D> {
    const { hooks } = this.#services;
    // before the hooks run: the removal of a hook during its decision must not allow anything
    const isAllowed = allowsUnmatched(client, hooks, 'authorizeSubscribe');
    const question = new SubscribeQuestion(client, hooks.questions, filter, options);
    const answered = (answer: Answer | undefined) => {
      question.answered();
      return act(answer, question, isAllowed);
    };
    const answer = hooks.first<SubscribeQuestion, Answer>(
      'authorizeSubscribe',
      functions,
      question,
      FAILED,
      client,
      question
    );
    return isThenable(answer) ? question.wait(answer, FAILED).then(answered) : answered(answer);
  }

  /** @param given the answer of the hooks; undefined: none has decided, and `answer` follows from the options */
  #decisionOf(
    filter: string,
    answer: Answer,
    question: SubscribeQuestion,
    { client, options }: FilterQuestion,
    given: Answer | undefined
  ): FilterDecision {
    const { hooks, metrics, settings, time } = this.#services;
    const code = codeOf(answer, options.qos);
    metrics.counts[aclMetric(given, code < 0x80)]++;
    const isAllowed = code < 0x80;
    const isFailed = answer === FAILED;
    const refused = () =>
      ({ client, action: 'subscribe', topic: innerFilter(filter), answer: given, isFailed }) as const;
    const decider = isAllowed ? undefined : this.#deciders.of(question, refused());
    if (question.isUndecided || isFailed) {
      const dueMs = isAllowed ? time.nowMs + Math.min(settings.aclCacheTtl, RETRY_MS) : undefined;
      return { filter, code, dueMs, decider, isFailure: true };
    }
    if (!hooks.isAsking(question.asked)) return { filter, code, dueMs: undefined, decider };
    const dueMs = isAllowed ? time.nowMs + settings.aclCacheTtl : undefined;
    return { filter, code, dueMs, decider, isFromSource: true };
  }
}

function isChanged(answer: Answer | undefined): answer is ChangedFilter {
  return typeof answer === 'object' && answer !== null && typeof (answer as Partial<ChangedFilter>).filter === 'string';
}

/** @param asked the requested QoS */
function codeOf(answer: Answer, asked: number): number {
  if (isChanged(answer)) return Math.min(asked, answer.qos ?? 2);
  if (isApproval(answer)) return asked;
  if (typeof answer === 'number') return answer < 0x80 ? Math.min(asked, answer) : answer;
  return (answer as Partial<Refusal>).reasonCode ?? ReasonCode.notAuthorized;
}
