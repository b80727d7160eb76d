import { checkTopicFilter, InvalidInput, matches, type QoS } from '../../lib/index.ts';

/** Messages that a bridge forwards in one direction. */
export interface BridgeTopics {
  /** The topic filter, without the prefixes. `$share/GROUP/FILTER` is possible. */
  readonly filter: string;
  /** The highest QoS of the messages. Default 1. */
  readonly qos?: QoS;
  /** Prefix of the topics at this broker, for example `site1/`. Default: none. */
  readonly localPrefix?: string;
  /** Prefix of the topics at the remote server. Default: none. */
  readonly remotePrefix?: string;
  /** True if retained messages are forwarded as retained. Default true. */
  readonly retain?: boolean;
}

/** `BridgeTopics` of one direction. */
export interface BridgeTopic {
  /** The topic filter of the subscription at the source side. */
  readonly subscription: string;
  /** The maximum QoS of forwarded messages. */
  readonly qos: QoS;
  /** True if the retain flag is kept. */
  readonly retain: boolean;
  /** The prefix to remove. */
  readonly from: string;
  /** The prefix to add. */
  readonly to: string;
  /** `subscription` without the share group. */
  readonly filter: string;
}

const KEYS: readonly string[] = ['filter', 'qos', 'localPrefix', 'remotePrefix', 'retain'];
const SHARED = /^\$share\/[^/]+\//;

/**
 * Read the option `out` or `in`. A filter may occur only once, because it is one subscription with one QoS.
 * @param isOut true if messages go from the broker to the remote server
 * @throws InvalidInput OPTION_INVALID
 */
export function readRules(list: unknown, field: string, isOut: boolean): readonly BridgeTopic[] {
  if (!Array.isArray(list))
    throw new InvalidInput('OPTION_INVALID', field, 'a list of objects with "filter"', typeof list);
  const rules = list.map((entry: unknown, at) => readRule(entry, `${field}[${at}]`, isOut));
  for (const [at, { subscription }] of rules.entries())
    if (rules.findIndex((other) => other.subscription === subscription) < at)
      throw new InvalidInput(
        'OPTION_INVALID',
        `${field}[${at}].filter`,
        'a filter that no other entry has',
        subscription
      );
  return rules;
}

function readRule(entry: unknown, field: string, isOut: boolean): BridgeTopic {
  if (typeof entry !== 'object' || entry === null)
    throw new InvalidInput('OPTION_INVALID', field, 'an object with "filter"', entry);
  for (const key of Object.keys(entry))
    if (!KEYS.includes(key)) throw new InvalidInput('OPTION_UNKNOWN', `${field}.${key}`, KEYS.join(', '), key);
  const { filter, qos = 1, localPrefix = '', remotePrefix = '', retain = true } = entry as BridgeTopics;
  if (typeof filter !== 'string') throw new InvalidInput('OPTION_INVALID', `${field}.filter`, 'a topic filter', filter);
  if (qos !== 0 && qos !== 1 && qos !== 2) throw new InvalidInput('OPTION_INVALID', `${field}.qos`, '0, 1 or 2', qos);
  if (typeof retain !== 'boolean') throw new InvalidInput('OPTION_INVALID', `${field}.retain`, 'a boolean', retain);
  for (const [name, prefix] of Object.entries({ localPrefix, remotePrefix }))
    if (typeof prefix !== 'string' || /[+#\0]/.test(prefix))
      throw new InvalidInput('OPTION_INVALID', `${field}.${name}`, 'a prefix without wildcards', prefix);
  const [from, to] = isOut ? [localPrefix, remotePrefix] : [remotePrefix, localPrefix];
  const [share = ''] = SHARED.exec(filter) ?? [];
  const whole = from + filter.slice(share.length);
  const fault = checkTopicFilter(share + whole);
  if (fault !== undefined)
    throw new InvalidInput('OPTION_INVALID', `${field}.filter`, 'a topic filter', filter, `${field}.filter: ${fault}`);
  return { subscription: share + whole, filter: whole, qos, retain, from, to };
}

/** The target of a message: its rule, and its topic at the other side. */
interface Mapped {
  readonly rule: BridgeTopic;
  readonly topic: string;
}

/** Maximum number of topics whose mapping is cached. */
const MAX_REMEMBERED = 1_000;

/** Maps the topics of one direction. The first rule whose filter matches applies. */
export class TopicMap {
  readonly rules: readonly BridgeTopic[];
  readonly #known = new Map<string, Mapped | undefined>();

  constructor(rules: readonly BridgeTopic[]) {
    this.rules = rules;
  }

  /** Tell whether messages may get a topic of the other side. */
  isTarget(topic: string): boolean {
    return this.rules.some(
      ({ filter, from, to }) => topic.startsWith(to) && matches(filter, from + topic.slice(to.length))
    );
  }

  /** @returns undefined if no rule applies, or if the mapped topic would be empty */
  map(topic: string): Mapped | undefined {
    const known = this.#known.get(topic);
    if (known !== undefined) return known;
    // `site1/#` matches `site1` as well, which does not have the prefix `site1/`
    const rule = this.rules.find(({ filter, from }) => topic.startsWith(from) && matches(filter, topic));
    if (rule === undefined) return undefined;
    const mapped = { rule, topic: rule.to + topic.slice(rule.from.length) };
    if (mapped.topic === '') return undefined;
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(topic, mapped);
    return mapped;
  }
}
