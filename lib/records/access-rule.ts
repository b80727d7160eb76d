import type { ClientInfo } from './client.ts';

/** The actions about which an access rule decides. */
export type RuleAction = 'publish' | 'subscribe';

/**
 * A rule of access control: allow or deny an action on topics.
 *
 * `clientId`, `username`, `hasUsername` and `address` select the clients to which the rule applies; several of them must all hold. A rule
 * without any of them applies to everyone.
 */
export interface AccessRule {
  /** The decision about what the rule applies to. */
  readonly access: 'allow' | 'deny';
  /** Default `pubsub`: both. The spellings `pub`, `sub` and `subpub` are also accepted. */
  readonly action?: RuleAction | 'pubsub' | 'pub' | 'sub' | 'subpub';
  /**
   * Topic filters. `%c` and `%u` as whole levels stand for the client id and the user name of the client. Default: all
   * topics except those under `$SYS`, to which only rules with a filter that begins with `$SYS` apply. A filter that
   * begins with `eq ` is refused unless `exact` is set.
   */
  readonly topic?: string | readonly string[];
  /** Compare topic names and topic filters with `topic` character by character. Default false. */
  readonly exact?: boolean;
  /** The client id of the client. Default: any. */
  readonly clientId?: string;
  /** The user name of the client. Default: any, or none. */
  readonly username?: string;
  /** The rule applies to clients with any user name. */
  readonly hasUsername?: true;
  /** IP addresses of clients, all of which must contain the client's: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
  readonly address?: string | readonly string[];
}

/** Access rules that a client received at its authentication. */
export interface ClientRules {
  /** Decide about a topic name. @returns undefined if no rule applies */
  decide(client: ClientInfo, action: RuleAction, topic: string): boolean | undefined;
  /** Decide about a topic filter of a subscription. @returns undefined if no rule applies */
  decideFilter(client: ClientInfo, filter: string): boolean | undefined;
  /** Find the deciding rule. @param isFilter whether `topic` is a topic filter */
  find(client: ClientInfo, action: RuleAction, topic: string, isFilter: boolean): DecidingAccessRule | undefined;
}

/** A rule that has decided. */
export interface DecidingAccessRule {
  readonly isAllow: boolean;
  /** Position in the list of rules, from 0; for rules that are set at run time, a number without meaning. */
  readonly order: number;
  /** The rule as written, with one topic filter. */
  readonly content: AccessRule;
}
