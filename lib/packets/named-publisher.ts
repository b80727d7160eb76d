import type { Publisher } from './message.ts';

/** In whose name the broker or the app publishes a message, without a client. */
export class NamedPublisher implements Publisher {
  readonly clientId: string;
  readonly username = undefined;

  constructor(clientId: string) {
    this.clientId = clientId;
  }
}

/** The action of a rule that publishes a message because of an event. */
export class RulePublisher extends NamedPublisher {
  /** The actions that have led to the message, this one last. */
  readonly chain: readonly string[];
  /** Counts the messages that one event has led to, by any chain. */
  readonly cascade: { count: number };

  /** @param chain ids of actions; the last one is the client id */
  constructor(chain: readonly string[], cascade: { count: number }) {
    super(chain[chain.length - 1]);
    this.chain = chain;
    this.cascade = cascade;
  }
}
