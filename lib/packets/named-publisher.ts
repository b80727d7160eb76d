import { BrokerError } from '../base/errors.ts';
import type { Publisher } from './message.ts';

/** Maximum number of messages that one event may cause. */
const MAX_MESSAGES = 1000;

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

/** The action of a rule that publishes a message in response to an event. */
export class RulePublisher extends NamedPublisher {
  /** The actions that caused the message, the last one being this action. */
  readonly chain: readonly string[];
  readonly cascade: Cascade;

  /** @param chain ids of actions; the last one is the client id */
  constructor(chain: readonly string[], cascade: Cascade) {
    super(chain[chain.length - 1]);
    this.chain = chain;
    this.cascade = cascade;
  }
}

/** Count a message that an event causes. @throws BrokerError RULE_LOOP if the event has caused too many */
export function countCaused(cascade: Cascade): void {
  if (++cascade.count > MAX_MESSAGES)
    throw new BrokerError(
      'RULE_LOOP',
      `rules publish because of each other: one event caused more than ${MAX_MESSAGES} messages`
    );
}
