import type { Publisher } from './message.ts';

/** A client id and user name under which the broker or the app publishes a message, without a client. */
export class NamedPublisher implements Publisher {
  readonly clientId: string;
  readonly username = undefined;

  constructor(clientId: string) {
    this.clientId = clientId;
  }
}

/** The action of a rule that publishes a message in response to an event. */
export class RulePublisher extends NamedPublisher {
  /** The actions that caused the message, the last one being this action. */
  readonly chain: readonly string[];
  /** Counter of the messages that one event has caused, through any chain. */
  readonly cascade: { count: number };

  /** @param chain ids of actions; the last one is the client id */
  constructor(chain: readonly string[], cascade: { count: number }) {
    super(chain[chain.length - 1]);
    this.chain = chain;
    this.cascade = cascade;
  }
}
