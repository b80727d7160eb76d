import type { Publisher } from '../packets/message.ts';
import type { RuleAction } from '../records/access-rule.ts';
import type { Receiver, ReceivingRights } from '../routing/receiving-rights.ts';
import { isOfClients } from '../topics/client-topics.ts';
import type { AccessRules, FoundAccessRule, RuledClient } from './access-rules.ts';
import { deciderOf } from './deciders.ts';
import type { Denials, PastRights } from './rule-set.ts';

/** The superusers among the records; see `CredentialRecords`. */
interface Superusers {
  get(name: string): { readonly isSuperuser: boolean } | undefined;
}

/** The parts that `DeliveryRights` consults. */
interface RightsParts {
  readonly rules: AccessRules;
  readonly settings: { readonly retainedRights: 'keep' | 'recheck' };
  readonly clientIds: Superusers;
  readonly usernames: Superusers;
  readonly logins: Superusers;
}

/**
 * Decides which messages subscribers may receive, by the access rules that the broker holds and by what sources have answered about
 * subscriptions.
 */
export class DeliveryRights implements ReceivingRights, PastRights {
  readonly #parts: RightsParts;
  readonly #rules: AccessRules;
  /** Subscriptions through which nothing is delivered, because the rules would refuse them now or a source has refused them. */
  readonly #revoked = new Set<object>();
  /**
   * Subscriptions that a source has refused when it was asked again. Some of them are not revoked, because the client is a superuser now.
   */
  readonly #refused = new Set<object>();

  constructor(parts: RightsParts) {
    this.#parts = parts;
    this.#rules = parts.rules;
  }

  mayDeny(topic: string): boolean {
    return this.#rules.mayDeny(topic);
  }

  get isActive(): boolean {
    return !this.#rules.isEmpty || this.#revoked.size > 0 || this.#refused.size > 0;
  }

  /** Record that a source has refused a subscription, so that nothing is delivered through it. @returns whether that is a change */
  refuse(subscription: object): boolean {
    this.#refused.add(subscription);
    if (this.#revoked.has(subscription)) return false;
    this.#revoked.add(subscription);
    return true;
  }

  /** Record that no source refuses a subscription. It stays revoked until it is restored. */
  accept(subscription: object): void {
    this.#refused.delete(subscription);
  }

  /** True if the last answer of a source refused a subscription. */
  isRefused(subscription: object): boolean {
    return this.#refused.has(subscription);
  }

  /** Deliver nothing through a subscription. */
  revoke(subscription: object): void {
    this.#revoked.add(subscription);
  }

  /** Deliver through a subscription again. */
  restore(subscription: object): void {
    this.#revoked.delete(subscription);
  }

  /** Release what is recorded about a removed subscription. */
  forget(subscription: object): void {
    this.#revoked.delete(subscription);
    this.#refused.delete(subscription);
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
    if (isOfClients(topic.slice(client.mountpoint.length))) return true; // only the client itself can have subscribed
    return this.#decide(client, 'subscribe', topic) !== false;
  }

  denials(client: Receiver, topic: string): Denials {
    if (client.isSuperuser) return { times: [], knownSince: -Infinity };
    const textOf = (rule: FoundAccessRule) => deciderOf(rule).text;
    return this.#rules.denials(client as unknown as RuledClient, topic.slice(client.mountpoint.length), textOf);
  }

  get rechecksRetained(): boolean {
    return this.#parts.settings.retainedRights === 'recheck';
  }

  mayStillPublish(
    { clientId, username }: Publisher,
    topic: string,
    { mountpoint }: Pick<Receiver, 'mountpoint'>
  ): boolean {
    // not specified: a mount point of the publisher is not stored
    const client = { clientId, username, mountpoint, transportInfo: {}, isSuperuser: false };
    if (this.#decide(client, 'publish', topic) !== false) return true;
    const { clientIds, usernames, logins } = this.#parts;
    const isSuperuser = (records: Superusers, name: string) => records.get(name)?.isSuperuser === true;
    if (isSuperuser(clientIds, clientId)) return true;
    return username !== undefined && (isSuperuser(usernames, username) || isSuperuser(logins, username));
  }

  #decide(client: Receiver, action: RuleAction, topic: string): boolean | undefined {
    return this.#rules.decide(client as unknown as RuledClient, action, topic.slice(client.mountpoint.length));
  }
}
