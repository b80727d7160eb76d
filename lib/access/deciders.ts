import { DECIDERS, Decider } from '../events/deciders.ts';
import type { HookOrigin, HookRegistry } from '../events/hooks.ts';
import type { Question } from '../events/questions.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { DecidingAccessRule, RuleAction } from '../records/access-rule.ts';
import { isOfClients } from '../topics/client-topics.ts';
import { innerFilter } from '../topics/topic.ts';
import type { AccessRules, FoundAccessRule, RuledClient } from './access-rules.ts';

/** A refused operation. */
interface Refused {
  readonly client: RuledClient;
  readonly action: RuleAction;
  /** The topic name or topic filter, without mount point and share prefix. */
  readonly topic: string;
  /** The answer of the hooks; undefined: none has decided. */
  readonly answer: unknown;
  /** True if a function has failed. */
  readonly isFailed: boolean;
}

/** Finds the deciders of refusals. A rule is searched again, so that operations that are allowed cost nothing. */
export class Deciders {
  readonly #hooks: HookRegistry;
  readonly #rules: AccessRules;
  readonly #ofRules = new WeakMap<DecidingAccessRule, Decider>();

  constructor(hooks: HookRegistry, rules: AccessRules) {
    this.#hooks = hooks;
    this.#rules = rules;
  }

  /** The decider of a refusal. @param question as the hooks have left it */
  of(question: Question, { client, action, topic, answer, isFailed }: Refused): Decider {
    const { undecidedBy } = question;
    const hook = answer === undefined ? undecidedBy : question.asked;
    if (hook === undefined) return DECIDERS.unmatched;
    const origin = this.#hooks.originOf(hook);
    if (origin !== undefined && 'rules' in origin) {
      const found = this.#rules.find(origin.rules, client, { action, topic, isFilter: action === 'subscribe' });
      return found === undefined ? DECIDERS.unmatched : this.#ruled(found); // it is found: it has just decided
    }
    return this.unruled(origin, isFailed || hook === undecidedBy, answer);
  }

  /** The decider of a refusal by a source, or by a hook of the app. @param origin undefined: a hook of the app */
  unruled(origin: HookOrigin | undefined, hasFailed: boolean, answer: unknown): Decider {
    const why = hasFailed ? undefined : whyOf(answer);
    if (origin !== undefined && 'source' in origin)
      return new Decider(hasFailed ? 'source_failed' : 'source_denied', { source: origin.source, why });
    if (hasFailed) return DECIDERS.hookFailed;
    return why === undefined ? DECIDERS.hook : new Decider('authorize_hook', { why });
  }

  /** The rule by which a client may no longer have a subscription. @param filter without mount point and share prefix */
  ofSubscription(client: RuledClient, filter: string): Decider {
    const question = { action: 'subscribe', topic: filter, isFilter: true } as const;
    const found = this.#rules.find('first', client, question) ?? this.#rules.find('last', client, question);
    return found === undefined ? DECIDERS.unmatched : this.#ruled(found);
  }

  /** The built-in check, or the rule about `$SYS`, that refuses a filter with this reason code. */
  ofFilter(client: RuledClient, filter: string, reasonCode: number): Decider {
    if (reasonCode === ReasonCode.notAuthorized) {
      if (isOfClients(innerFilter(filter))) return OF_OTHERS;
      const decider = this.ofSubscription(client, innerFilter(filter));
      if (decider !== DECIDERS.unmatched) return decider;
    }
    return BUILT_IN.get(reasonCode) ?? INVALID_FILTER;
  }

  #ruled(found: FoundAccessRule): Decider {
    let decider = this.#ofRules.get(found.rule);
    if (decider === undefined) {
      decider = deciderOf(found);
      this.#ofRules.set(found.rule, decider);
    }
    return decider;
  }
}

/** The decider of a refusal by a rule. */
export function deciderOf({ by, source, rule: { content, order } }: FoundAccessRule): Decider {
  if (by === 'records') return new Decider('acl_record', { rule: content });
  return new Decider(by === 'client' ? 'client_rule' : 'acl_file_rule', { source, rule: content, index: order });
}

/** The reason that a refusal gives to the operator. */
export function whyOf(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { why, reasonString } = answer as { readonly why?: unknown; readonly reasonString?: unknown };
  const text = why ?? reasonString;
  return typeof text === 'string' ? text : undefined;
}

const INVALID_FILTER = new Decider('filter_not_allowed', {
  why: 'the filter is not valid, too long, or has more levels than maxTopicLevels'
});
const OF_OTHERS = new Decider('filter_not_allowed', {
  why: 'only the client itself may subscribe below $client/<client id>/'
});
const BUILT_IN: ReadonlyMap<number, Decider> = new Map(
  [
    [ReasonCode.notAuthorized, 'clients on other machines may not subscribe below $SYS (option sysForRemoteClients)'],
    [ReasonCode.sharedSubscriptionsNotSupported, 'shared subscriptions are not available (option sharedSubscription)'],
    [
      ReasonCode.wildcardSubscriptionsNotSupported,
      'subscriptions with wildcards are not available (option wildcardSubscription)'
    ],
    [
      ReasonCode.subscriptionIdentifiersNotSupported,
      'subscription identifiers are not available (option subscriptionIdentifiers)'
    ]
  ].map(([code, why]) => [code as number, new Decider('filter_not_allowed', { why: why as string })])
);
