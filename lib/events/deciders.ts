// The decider of a refusal is one object that is kept with the cached verdict and passed to the log of reasons. Most
// are shared: constants, or one for each rule (`lib/access/deciders.ts`). The text of each is made once, when
// it is read for the first time, so a refusal that is repeated allocates nothing.

import type { AccessRule } from '../records/access-rule.ts';

/**
 * The participants in a decision: bans; the superuser flag; built-in checks (the form of topics, limits of the zone, `$SYS`); rules that
 * are set at run time (`records`), that the client got with its authentication (`client`), or that a source has given to the broker
 * (`rules`); a source that is asked; a hook of the app; and `aclNomatch`, by which everything else is decided (`default`).
 */
export type DecisionStep =
  | 'ban'
  | 'superuser'
  | 'builtin'
  | 'records'
  | 'client'
  | 'rules'
  | 'source'
  | 'hook'
  | 'default';

/** The properties of a `Decider`, as far as they apply. */
interface DeciderProperties {
  /** Name of the source. */
  readonly source?: string | undefined;
  /** The rule that denies. */
  readonly rule?: AccessRule;
  /** The index of the rule in the list of the source or of the client, from 0. */
  readonly index?: number | undefined;
  /** More about the reason, for the operator: a limit with its option, or the words of a hook or a source. */
  readonly why?: string | undefined;
  /** The reason string for the publisher. */
  readonly reasonString?: string | undefined;
}

/** A row of `REFUSALS`. */
interface RefusalEntry {
  readonly by: DecisionStep;
  /** Name the decider. */
  text(decider: DeciderProperties): string;
  /** True if the text says more than the code. */
  readonly isSpecific?: true;
  /** The reason of the drop of a refused message; default `not_authorized`. */
  readonly drop?: 'schema';
}

const sourceOf = ({ source = '' }: DeciderProperties) => `the source ${quote(source)}`;
const ruleOf = ({ rule }: DeciderProperties) => (rule === undefined ? 'it denies' : printRule(rule));
const placeOf = ({ index }: DeciderProperties) => (index === undefined ? 'a rule' : `rule ${index + 1}`);
const builtIn = (text: string): RefusalEntry => ({ by: 'builtin', text: () => text });

function specific(by: DecisionStep, text: RefusalEntry['text']): RefusalEntry {
  return { by, text, isSpecific: true };
}

/** The causes of refusals, with what decides. The codes are those of the log of reasons; they are public and are not changed. */
const REFUSALS = {
  acl_record: specific('records', (decider) => `an access rule that is set at run time: ${ruleOf(decider)}`),
  client_rule: specific(
    'client',
    (decider) => `${placeOf(decider)} of those that the client got with its authentication: ${ruleOf(decider)}`
  ),
  acl_file_rule: specific('rules', (decider) => `${placeOf(decider)} of ${sourceOf(decider)}: ${ruleOf(decider)}`),
  acl_nomatch: { by: 'default', text: () => 'no rule, source or hook allows it (option aclNomatch)' },
  authorize_hook: { by: 'hook', text: () => 'a hook of the app' },
  source_denied: specific('source', sourceOf),
  source_failed: specific('source', (decider) => `${sourceOf(decider)} could not decide`),
  publish_hook: { by: 'hook', text: () => 'a hook of the app' },
  packet_too_large: builtIn('the packet is too large'),
  topic_not_allowed: builtIn('the topic is not allowed'),
  system_topic: builtIn('the topic is below $SYS'),
  schema: { by: 'builtin', text: () => 'the payload does not match a schema', drop: 'schema' },
  topic_invalid: builtIn('the topic is not valid'),
  qos_not_allowed: builtIn('the QoS or the retain flag is not allowed'),
  filter_not_allowed: builtIn('the filter is not allowed'),
  delayed_stopped: builtIn('the feature delayed is stopped'),
  quota: builtIn('a limit is reached'),
  store_full: builtIn('the space of the store is used up'),
  store_failed: builtIn('the store has failed'),
  memory_watermark: builtIn('memory is short')
} as const satisfies Readonly<Record<string, RefusalEntry>>;

/** The code of a refusal. */
type RefusalCode = keyof typeof REFUSALS;

/** The decider of a refusal. */
export class Decider {
  readonly code: RefusalCode;
  readonly #properties: DeciderProperties;
  #text: string | undefined = undefined;
  #detail: string | undefined = undefined;

  constructor(code: RefusalCode, properties: DeciderProperties = {}) {
    this.code = code;
    this.#properties = properties;
  }

  /** The participant in the decision. */
  get by(): DecisionStep {
    return REFUSALS[this.code].by;
  }

  /** The reason of the drop of a message that it refuses. */
  get drop(): 'schema' | 'not_authorized' {
    const { drop }: RefusalEntry = REFUSALS[this.code];
    return drop ?? 'not_authorized';
  }

  /** The reason string for the publisher; undefined: it gets the reason code only. */
  get reasonString(): string | undefined {
    return this.#properties.reasonString;
  }

  /** The decider in a phrase: `rule 3 of the source "acl": deny publish to "plant/#"`. */
  get text(): string {
    return this.#text ?? this.#print();
  }

  /** The phrase, as far as it says more than the code. */
  get detail(): string | undefined {
    if (this.#text === undefined) this.#print();
    return this.#detail;
  }

  #print(): string {
    const { why } = this.#properties;
    const { text, isSpecific }: RefusalEntry = REFUSALS[this.code];
    const named = text(this.#properties);
    this.#text = why === undefined ? named : `${named}: ${why}`;
    this.#detail = isSpecific ? this.#text : why;
    return this.#text;
  }
}

const FAILED = 'it has failed, or gave no answer in time';

/** The deciders that need no rule and no source. */
export const DECIDERS = {
  unmatched: new Decider('acl_nomatch'),
  hook: new Decider('authorize_hook'),
  hookFailed: new Decider('authorize_hook', { why: FAILED }),
  publishHook: new Decider('publish_hook'),
  publishHookFailed: new Decider('publish_hook', { why: FAILED }),
  systemTopic: new Decider('system_topic', { why: 'clients may publish there only if an access rule allows it' }),
  sparkplugTopic: new Decider('topic_not_allowed', {
    why: 'only the broker publishes below $sparkplug (option sparkplug)'
  }),
  responseTopic: new Decider('topic_not_allowed', {
    why: 'the requester is not subscribed to the response topic, or the topic is below $SYS or $delayed or not valid in its zone'
  }),
  delayedTopic: new Decider('topic_invalid', {
    why: 'expected $delayed/<seconds>/<topic>'
  }),
  delayedStopped: new Decider('delayed_stopped'),
  delayedSystemTopic: new Decider('system_topic', { why: 'clients may not delay messages to $SYS or $delayed' }),
  delayedFull: new Decider('quota', {
    why: 'there are too many delayed messages (options maxDelayedMessages, maxDelayedBytes)'
  }),
  storeFull: new Decider('store_full'),
  storeFailed: new Decider('store_failed'),
  subscriptionsFull: new Decider('quota', { why: 'the client has too many subscriptions (option maxSubscriptions)' }),
  allSubscriptionsFull: new Decider('quota', {
    why: 'there are too many subscriptions (option maxTotalSubscriptions)'
  }),
  tooManyNames: new Decider('quota', { why: 'the client requests the same subscription by too many filters' }),
  memoryShort: new Decider('memory_watermark', {
    why: 'the queue of a receiver is full, and memory in use stays above memoryHighWatermark'
  })
} as const;

const ACTIONS: Readonly<Record<string, string>> = {
  pub: 'publish',
  sub: 'subscribe',
  pubsub: 'publish and subscribe',
  subpub: 'publish and subscribe'
};

/** Print an access rule in a phrase: `deny publish to "plant/#" for client "c1"`. */
function printRule(rule: AccessRule): string {
  const { access, action = 'pubsub', topic, exact, clientId, username, hasUsername, address } = rule;
  const topics = topic === undefined ? 'all topics' : [topic].flat().map(quote).join(', ');
  return [
    `${access} ${ACTIONS[action] ?? action} to ${exact === true ? 'exactly ' : ''}${topics}`,
    clientId === undefined ? '' : ` for client ${quote(clientId)}`,
    username === undefined ? '' : ` for user ${quote(username)}`,
    hasUsername === true ? ' for clients with a user name' : '',
    address === undefined ? '' : ` from ${[address].flat().join(', ')}`
  ].join('');
}

function quote(text: string): string {
  return JSON.stringify(text);
}
