import type { QoS } from '../packets/types.ts';

/** The options with which a subscription was granted. */
export interface SubscriptionOptions {
  /** The maximum QoS of messages. */
  readonly qos: QoS;
  /** No Local: the client does not receive messages that it published itself. */
  readonly noLocal: boolean;
  /** Retain As Published: messages keep the retain flag with which they were published. */
  readonly retainAsPublished: boolean;
  /** Retain Handling: retained messages are sent at every subscribe (0), for new subscriptions only (1), or never (2). */
  readonly retainHandling: 0 | 1 | 2;
  /** Subscription Identifier; undefined if the subscription has none. */
  readonly id?: number;
}

/** Names of the options that an application may set for a subscription. */
export const SUBSCRIPTION_NAMES: readonly string[] = ['qos', 'noLocal', 'retainAsPublished', 'retainHandling'];

/** The request of a SUBSCRIBE for one topic filter, and the answer. */
export interface SubscribeResult {
  /** The requested topic filter, without the mount point. */
  readonly filter: string;
  /** The topic filter of the subscription, if a hook has replaced `filter`. */
  readonly grantedFilter: string | undefined;
  /** The requested options. */
  readonly options: SubscriptionOptions;
  /** The granted QoS or, from 0x80, the reason code of the refusal, as in SUBACK. */
  readonly reasonCode: number;
}
