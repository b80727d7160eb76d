import type { RuleAction } from '../records/access-rule.ts';
import type { Receiver, ReceivingRights } from '../routing/receiving-rights.ts';
import type { AccessRules, RuledClient } from './access-rules.ts';

/** Decides which messages subscribers may receive, by the access rules that the broker holds. */
export class DeliveryRights implements ReceivingRights {
  readonly #rules: AccessRules;
  /** Subscriptions that the rules would refuse now. */
  readonly #revoked = new Set<object>();

  constructor(rules: AccessRules) {
    this.#rules = rules;
  }

  mayDeny(topic: string): boolean {
    return this.#rules.mayDeny(topic);
  }

  get isActive(): boolean {
    return !this.#rules.isEmpty || this.#revoked.size > 0;
  }

  /** Deliver nothing through a subscription. */
  revoke(subscription: object): void {
    this.#revoked.add(subscription);
  }

  /** Deliver through a subscription again, or forget one that was removed. */
  restore(subscription: object): void {
    this.#revoked.delete(subscription);
  }

  get hasRevoked(): boolean {
    return this.#revoked.size > 0;
  }

  isRevoked(subscription: object): boolean {
    return this.#revoked.has(subscription);
  }

  /** Tell whether a rule allows a client to publish to a topic under `$SYS`. */
  mayPublishSystem(client: Receiver, topic: string): boolean {
    return this.#decide(client, 'publish', topic) === true;
  }

  mayReceive(client: Receiver, topic: string): boolean {
    if (client.isSuperuser) return true;
    return this.#decide(client, 'subscribe', topic) !== false;
  }

  #decide(client: Receiver, action: RuleAction, topic: string): boolean | undefined {
    return this.#rules.decide(client as unknown as RuledClient, action, topic.slice(client.mountpoint.length));
  }
}
