import type { Message } from '../packets/message.ts';
import type { UserProperty } from '../packets/types.ts';
import type { Subscription } from './subscription.ts';

/**
 * Follows the messages of some topics through the broker, such as for distributed tracing: `broker.monitor.follow`. Its functions are called
 * on the way of the message: they must be fast, and must not throw.
 */
export interface MessageFollower {
  /**
   * Called when a message is accepted: after access rules, hooks and schemas, and before it is retained, routed or delayed. For a delayed
   * message it is called once more after the delay.
   * @returns undefined: the message is not followed, and its bytes stay as they are
   */
  accepted(message: Message): MessageTrail | undefined;
  /**
   * Called when a connector queues an event about a message of the topics of this follower, to be sent to another server.
   * @param connector that sends it
   * @returns undefined: the sending is not followed
   */
  sending?(message: Message, connector: SendingConnector): SendingFollower | undefined;
}

/** A connector that sends an event about a message. */
export interface SendingConnector {
  /** The kind of the connector: `webhook`. */
  readonly kind: string;
  /** The name of the connector. */
  readonly name: string;
  /** The URL of its server; undefined: it is a function of the app. */
  readonly url: URL | undefined;
}

/** Follows the sending of an event about a message. */
export interface SendingFollower {
  /** Headers of the request. */
  readonly headers: readonly UserProperty[];
  /** Called when the event is sent or dropped. @param reason why it is dropped; undefined: it is sent */
  ended(reason?: string): void;
}

/** A message that is followed. */
export interface MessageTrail {
  /** User properties that the message has from now on. They replace those with the same names. */
  readonly userProperties: readonly UserProperty[];
  /** Called when the message is about to be routed; not for a message that is delayed or refused. */
  routing(): RoutingFollower;
}

/** Follows the routing of one message. */
export interface RoutingFollower {
  /** Called for each rule that the message reaches. It must call `run`, which evaluates the rule. @param id of the rule */
  rule(id: string, run: () => void): void;
  /**
   * Called for each receiver before the message is delivered to it.
   * @param clientId of the receiver; undefined: a handler of the app
   * @param filter the filter of its subscription, with the share prefix if there is one
   * @returns undefined: this delivery is not followed
   */
  delivering(clientId: string | undefined, filter: string): DeliveryFollower | undefined;
  /** Called when the message is routed. @param receivers number of subscribers that accepted it */
  routed(receivers: number): void;
}

/** Follows the delivery of a message to one receiver. */
export interface DeliveryFollower {
  /** User properties of the packet for this receiver. They replace those with the same names. */
  readonly userProperties: readonly UserProperty[];
  /** Called when the delivery has reached a stage. @param reason of a drop */
  reached(stage: DeliveryStage, reason?: string): void;
}

/**
 * A stage of a delivery: `queued`: waits in memory; `sent`: written to the output of the connection with QoS 1 or 2. The last one is
 * `written` with QoS 0, `acknowledged` with QoS 1 and 2, `handled` by the app, `stored` for a client that is away, `dropped`, or
 * `disconnected` before the acknowledgement.
 */
export type DeliveryStage = 'queued' | 'sent' | FinalStage;

/** The last stage of a delivery. */
export type FinalStage = 'written' | 'acknowledged' | 'handled' | 'stored' | 'dropped' | 'disconnected';

/** The routing of a message that is followed, as `Publishing` uses it. */
export interface FollowedRouting extends Pick<RoutingFollower, 'rule' | 'routed'> {
  /** Deliver the message to one subscriber. @returns false if it was dropped */
  deliver(subscription: Subscription): boolean;
}
