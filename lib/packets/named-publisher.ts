import { BrokerError } from '../base/errors.ts';
import type { Message, Publisher } from './message.ts';

/** Maximum number of messages that one event may cause. */
const MAX_MESSAGES = 1000;
/** Maximum number of rules and actions that publish because of each other in a chain. */
const MAX_HOPS = 16;

/** A client id and user name under which the broker or the app publishes a message, without a client. */
export class NamedPublisher implements Publisher {
  readonly clientId: string;
  readonly username = undefined;

  constructor(clientId: string) {
    this.clientId = clientId;
  }
}

/** Counter of the messages that one event has caused, through any chain. */
export interface Cascade {
  count: number;
}

/** The rule that has published a message. */
export interface RuleReference {
  /** `rule`: over events of the broker, with an action; `streamRule`: over streams, with a sink. */
  readonly kind: 'rule' | 'streamRule';
  /** The id of the rule. */
  readonly id: string;
}

/** The action of a rule that publishes a message in response to an event. */
export class RulePublisher extends NamedPublisher {
  /** The causes of the message, this rule or action last; see `causedBy`. */
  readonly chain: readonly string[];
  readonly cascade: Cascade;
  readonly #ruleId: string | undefined;

  /**
   * @param chain the last one gives the client id
   * @param ruleId the rule of the action, if the last one is an action
   */
  constructor(chain: readonly string[], cascade: Cascade, ruleId?: string) {
    const last = chain[chain.length - 1];
    super(last.slice(last.indexOf('/') + 1));
    this.chain = chain;
    this.cascade = cascade;
    this.#ruleId = ruleId;
  }

  /** The rule, which the client id does not name if an action has published. */
  get rule(): RuleReference {
    if (this.#ruleId !== undefined) return { kind: 'rule', id: this.#ruleId };
    return { kind: this.chain[this.chain.length - 1].startsWith('rule/') ? 'rule' : 'streamRule', id: this.clientId };
  }
}

/** The rule that has published a message. @returns undefined if none has, or if the message was read from the store */
export function ruleBehind(message: Message): RuleReference | undefined {
  const { origin } = message;
  return origin instanceof RulePublisher ? origin.rule : undefined;
}

/**
 * The causes of a message with the one that publishes it.
 * @param key the id of a stream rule, which contains no "/", `rule/ID` of a broker rule or `action/ID`
 * @param causes the causes of the event or output; absent if it has none
 * @throws BrokerError RULE_LOOP if it has caused the event or output itself, or if more than 16 have
 */
export function causedBy(key: string, causes: readonly string[] | undefined): readonly string[] {
  if (causes === undefined) return [key];
  const fail = (why: string) => new BrokerError('RULE_LOOP', `rules publish because of each other: ${why}`);
  if (causes.includes(key)) {
    const name = key.includes('/') ? key.replace('/', ' ') : `stream rule ${key}`;
    throw fail(`the ${name} already caused this message`);
  }
  if (causes.length >= MAX_HOPS) throw fail(`more than ${MAX_HOPS} rules caused this message`);
  return [...causes, key];
}

/** Count a message that an event causes. @throws BrokerError RULE_LOOP if the event has caused too many */
export function countCaused(cascade: Cascade): void {
  if (++cascade.count > MAX_MESSAGES)
    throw new BrokerError(
      'RULE_LOOP',
      `rules publish because of each other: one event caused more than ${MAX_MESSAGES} messages`
    );
}
