import type { QoS } from '../packets/types.ts';
import { unmountedFilter } from '../topics/topic.ts';
import type { RecordTable } from './record-table.ts';

/** One subscription of one session. */
export interface SubscriptionRecord {
  /** Name of the node that has the session. */
  readonly node: string;
  /** The client id of the session. */
  readonly clientId: string;
  /** The topic filter as seen by the client, without the mount point and with a share prefix. */
  readonly filter: string;
  /** The granted QoS. */
  readonly qos: QoS;
  /** No Local: the client does not receive messages that it published itself. */
  readonly noLocal: boolean;
  /** Retain As Published: messages keep the retain flag with which they were published. */
  readonly retainAsPublished: boolean;
  /** Retain Handling: retained messages are sent at every subscribe (0), for new subscriptions only (1), or never (2). */
  readonly retainHandling: 0 | 1 | 2;
  /** Subscription Identifier; undefined if the subscription has none. */
  readonly id: number | undefined;
}

/** The source of the record of a subscription. */
export interface RecordedSubscription {
  readonly subscriber: { readonly receiver: { readonly clientId: string } | undefined; readonly mountpoint: string };
  readonly filter: string;
  readonly qos: QoS;
  readonly noLocal: boolean;
  readonly retainAsPublished: boolean;
  readonly retainHandling: 0 | 1 | 2;
  readonly subscriptionIds: readonly number[] | undefined;
}

export const SUBSCRIPTION_FIELDS: RecordTable<RecordedSubscription, SubscriptionRecord> = {
  node: { from: (_, node) => node, later: 'node', earlier: 'node', rule: 'node' },
  clientId: {
    from: ({ subscriber }) => subscriber.receiver?.clientId ?? '',
    later: 'clientid',
    earlier: 'client_id',
    webhook: 'clientid',
    rule: 'clientid'
  },
  filter: {
    from: ({ subscriber, filter }) => unmountedFilter(filter, subscriber.mountpoint),
    later: 'topic',
    earlier: 'topic',
    webhook: 'topic',
    rule: 'topic'
  },
  qos: { from: ({ qos }) => qos, later: 'qos', earlier: 'qos', webhook: 'qos', rule: 'qos' },
  noLocal: { from: ({ noLocal }) => noLocal },
  retainAsPublished: { from: ({ retainAsPublished }) => retainAsPublished },
  retainHandling: { from: ({ retainHandling }) => retainHandling },
  id: { from: ({ subscriptionIds }) => subscriptionIds?.[0] }
};
