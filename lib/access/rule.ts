// One rule of this file has one topic filter; a rule with several becomes several with the same order. A rule without
// a filter applies to all topics except those under `$SYS`. Names of clients replace `%c` and `%u` as whole levels; a
// name that would change the filter matches nothing in a rule that allows and everything in one that denies, so that
// no client gains rights by its name.

import { InvalidInput, show } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { AccessRule, RuleAction } from '../records/access-rule.ts';
import type { ClientInfo } from '../records/client.ts';
import { checkTopicFilter, covers, isWildcard, matches, overlaps, parseSharedFilter } from '../topics/topic.ts';
import { contains, isNetwork, type Network, networkOf } from './network.ts';

/** The properties of a client that rules depend on. */
export interface Subject {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly transportInfo: { readonly remoteAddress?: string | undefined };
}

const RULE_NAMES = ['access', 'action', 'topic', 'exact', 'clientId', 'username', 'hasUsername', 'address'] as const;

/** The actions that each spelling denotes. */
const ACTIONS: Readonly<Record<string, { readonly publish: boolean; readonly subscribe: boolean }>> = {
  publish: { publish: true, subscribe: false },
  pub: { publish: true, subscribe: false },
  subscribe: { publish: false, subscribe: true },
  sub: { publish: false, subscribe: true },
  pubsub: { publish: true, subscribe: true },
  subpub: { publish: true, subscribe: true }
};

/** `eq ` before a topic is the spelling of database rows. Elsewhere it would be part of the filter. */
const NO_EQ = 'a topic filter without "eq " (use "exact": true, or {eq, "topic"} in a file of terms)';

/** A level that is replaced by a name of the client. */
const PLACEHOLDER = /(^|\/)%[cu](?=\/|$)/;
const PLACEHOLDERS = /(^|\/)(%[cu])(?=\/|$)/g;
/** Names that would change the meaning of a filter if they were inserted as a level. */
const UNSAFE = /[/+#]|^\$|^$/;

/** One topic filter of an access rule, ready to be evaluated. */
export class ReadAccessRule {
  /** Precedence of the rule: of those that apply, the one with the lowest number decides. */
  readonly order: number;
  readonly isAllow: boolean;
  readonly publish: boolean;
  readonly subscribe: boolean;
  readonly clientId: string | undefined;
  readonly username: string | undefined;
  /** The topic filter, with placeholders; undefined: all topics except those under `$SYS`. */
  readonly filter: string | undefined;
  /** When the broker began to use it, in milliseconds since 1970; see `RuleHistory`. */
  usedSince = -Infinity;
  readonly #isExact: boolean;
  readonly #hasUsername: boolean;
  readonly #addresses: readonly Network[];
  readonly #address: AccessRule['address'];
  readonly #hasPlaceholder: boolean;

  constructor(rule: AccessRule, filter: string | undefined, order: number) {
    const { publish, subscribe } = ACTIONS[rule.action ?? 'pubsub'];
    this.order = order;
    this.isAllow = rule.access === 'allow';
    this.publish = publish;
    this.subscribe = subscribe;
    this.clientId = rule.clientId;
    this.username = rule.username;
    this.filter = filter;
    this.#isExact = rule.exact === true;
    this.#hasUsername = rule.hasUsername === true;
    this.#addresses = listOf(rule.address).map(networkOf);
    this.#address = rule.address;
    this.#hasPlaceholder = filter !== undefined && !this.#isExact && PLACEHOLDER.test(filter);
  }

  /** The rule as it was written, with one topic filter. */
  get content(): AccessRule {
    const { publish, subscribe, clientId, username, filter } = this;
    return {
      access: this.isAllow ? 'allow' : 'deny',
      action: publish && subscribe ? 'pubsub' : publish ? 'publish' : 'subscribe',
      ...(filter === undefined ? {} : { topic: filter }),
      ...(this.#isExact ? { exact: true } : {}),
      ...(clientId === undefined ? {} : { clientId }),
      ...(username === undefined ? {} : { username }),
      ...(this.#hasUsername ? { hasUsername: true as const } : {}),
      ...(this.#address === undefined ? {} : { address: this.#address })
    };
  }

  /** A filter that matches at least the topics of the rule, for the index of rules. */
  get indexed(): string | undefined {
    return this.#hasPlaceholder ? this.filter?.replace(PLACEHOLDERS, '$1+') : this.filter;
  }

  /** Note that the broker uses the rule. @param ms since this time, in milliseconds since 1970 */
  use(ms: number): void {
    this.usedSince = ms;
  }

  /** Tell whether the rule applies to this client. */
  appliesTo({ clientId, username, transportInfo }: Subject): boolean {
    if (this.clientId !== undefined && this.clientId !== clientId) return false;
    if (this.username !== undefined && this.username !== username) return false;
    if (this.#hasUsername && username === undefined) return false;
    return this.#addresses.every((network) => contains(network, transportInfo.remoteAddress));
  }

  /** Tell whether the rule matches a topic name. */
  matches(client: Subject, topic: string): boolean {
    if (this.filter === undefined) return !isSystem(topic);
    if (this.#isExact) return this.filter === topic;
    const filter = this.#filterFor(client);
    return filter !== undefined && matches(filter, topic);
  }

  /** Tell whether the rule matches every topic that a topic filter matches. @param requested without a share prefix */
  covers(client: Subject, requested: string): boolean {
    if (this.filter === undefined) return !isSystem(requested);
    if (this.#isExact) return this.filter === requested;
    const filter = this.#filterFor(client);
    return filter !== undefined && covers(filter, requested);
  }

  /** Tell whether the rule matches some topic that a topic filter matches. @param requested without a share prefix */
  overlaps(client: Subject, requested: string): boolean {
    if (this.filter === undefined) return !isSystem(requested);
    if (this.#isExact && isWildcard(this.filter)) return this.filter === requested;
    const filter = this.#filterFor(client);
    return filter !== undefined && overlaps(filter, requested);
  }

  /**
   * The topic filter with the names of a client inserted. A name that cannot be a level of a filter matches nothing in a rule that allows,
   * and everything in one that denies.
   */
  #filterFor({ clientId, username = '' }: Subject): string | undefined {
    const { filter } = this;
    if (!this.#hasPlaceholder || filter === undefined) return filter;
    let isSafe = true;
    const named = filter.replace(PLACEHOLDERS, (_, before: string, placeholder: string) => {
      const name = placeholder === '%c' ? clientId : username;
      if (!UNSAFE.test(name)) return before + name;
      isSafe = false;
      return `${before}+`;
    });
    return isSafe || !this.isAllow ? named : undefined;
  }
}

/** Tell whether a topic name or filter is under `$SYS`. */
export function isSystem(topic: string): boolean {
  return topic.startsWith('$SYS') && (topic.length === 4 || topic.charCodeAt(4) === 0x2f);
}

/**
 * Make the rules of a list of access rules, one for each topic filter, in their order.
 * @param field the option that contains the list, for error messages
 * @param first the number of the first rule
 * @throws InvalidInput ACCESS_RULE_INVALID, TOPIC_FILTER_INVALID, OPTION_UNKNOWN for an unknown key
 */
export function rulesOf(list: readonly AccessRule[], field = 'rules', first = 0): ReadAccessRule[] {
  if (!Array.isArray(list)) throw new InvalidInput('ACCESS_RULE_INVALID', field, 'a list of access rules', list);
  return list.flatMap((rule, i) => {
    const at = first + i;
    checkRule(rule, `${field}[${at}]`);
    const topics = rule.topic === undefined ? [undefined] : listOf(rule.topic);
    return topics.map((topic) => new ReadAccessRule(rule, topic, at));
  });
}

/**
 * Check a list of access rules, for example before they are handed to the broker.
 * @throws InvalidInput ACCESS_RULE_INVALID, TOPIC_FILTER_INVALID, OPTION_UNKNOWN for an unknown key
 */
export function checkAccessRules(list: readonly AccessRule[]): void {
  rulesOf(list);
}

/**
 * Decide by a list of rules that the broker does not hold: the first rule that applies decides, and those after it are not read.
 *
 * The messages of a subscription are not checked against such rules. So for a subscription, a rule that allows applies only if it covers
 * every topic that the filter can match, and a rule that denies applies as soon as it matches one of them.
 * @param topic the topic name of a message, or the topic filter of a subscription, without a share prefix
 * @param field names the list in error messages
 * @returns undefined if no rule applies
 * @throws InvalidInput as `checkAccessRules`, for rules up to the one that decides
 */
export function decideByRules(
  list: Iterable<AccessRule>,
  client: ClientInfo,
  action: RuleAction,
  topic: string,
  field = 'rules'
): boolean | undefined {
  let at = 0;
  for (const given of list) {
    const rules = rulesOf([given], field, at++);
    const deciding = rules.find((rule) => {
      if (!rule[action] || !rule.appliesTo(client)) return false;
      if (action === 'publish') return rule.matches(client, topic);
      return rule.isAllow ? rule.covers(client, topic) : rule.overlaps(client, topic);
    });
    if (deciding !== undefined) return deciding.isAllow;
  }
  return undefined;
}

/** Check an access rule. @throws as `rulesOf` */
export function checkRule(rule: AccessRule, field: string): void {
  checkObject(rule, field);
  checkNames(rule, RULE_NAMES, field);
  const { access, action, topic, exact, clientId, username, hasUsername, address } = rule;
  const fail = (name: keyof AccessRule, expected: string): never => {
    throw new InvalidInput('ACCESS_RULE_INVALID', `${field}.${name}`, expected, rule[name]);
  };
  if (access !== 'allow' && access !== 'deny') fail('access', '"allow" or "deny"');
  if (action !== undefined && !Object.hasOwn(ACTIONS, action)) fail('action', '"publish", "subscribe" or "pubsub"');
  if (exact !== undefined && typeof exact !== 'boolean') fail('exact', 'true or false');
  if (exact === true && topic === undefined) fail('topic', 'a topic, because "exact" is true');
  for (const name of ['clientId', 'username'] as const)
    if (rule[name] !== undefined && typeof rule[name] !== 'string') fail(name, 'a string');
  if (hasUsername !== undefined && hasUsername !== true) fail('hasUsername', 'true or undefined');
  if (username !== undefined && hasUsername) fail('hasUsername', 'undefined, because "username" is given');
  if (clientId === '' || username === '') fail(clientId === '' ? 'clientId' : 'username', 'a name');
  for (const one of listOf(address))
    if (!isNetwork(one)) fail('address', 'an IP address or a network such as 10.0.0.0/8');
  if (topic === undefined) return;
  const topics = listOf(topic);
  if (topics.length === 0) fail('topic', 'at least one topic filter');
  for (const filter of topics) {
    checkRuleFilter(filter, field);
    if (exact !== true && filter.startsWith('eq '))
      throw new InvalidInput('ACCESS_RULE_INVALID', `${field}.topic`, NO_EQ, filter);
  }
}

/** @throws InvalidInput TOPIC_FILTER_INVALID */
function checkRuleFilter(filter: string, field: string): void {
  if (typeof filter !== 'string')
    throw new InvalidInput('TOPIC_FILTER_INVALID', `${field}.topic`, 'a topic filter', filter);
  const isShared = parseSharedFilter(filter) !== undefined;
  const fault = isShared
    ? `topic filter ${show(filter)}: rules apply to the filter inside a shared subscription; leave the share prefix out`
    : checkTopicFilter(filter);
  if (fault !== undefined)
    throw new InvalidInput('TOPIC_FILTER_INVALID', `${field}.topic`, 'a topic filter', filter, fault);
}

function listOf<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value as T];
}
