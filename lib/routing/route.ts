import type { Message } from '../packets/message.ts';
import type { Subscription } from './subscription.ts';
import type { TopicSchema } from './topic-schemas.ts';
import type { Watcher } from './watchers.ts';

/** Kinds of topic names: `system` is `$SYS/...`, `delayed` is `$delayed/...`. */
export const TopicKind = { ordinary: 0, system: 1, delayed: 2 } as const;

/** The view of a share group that delivery uses. */
export interface Group {
  /** The subscriptions of the group. */
  readonly members: readonly Subscription[];
  /** True if messages to any member are persisted. */
  readonly mayPersist: boolean;
  /** True if any member can send a QoS 1 or 2 message at once. */
  readonly hasRoom: boolean;
  /** Monotonic time from which the next example of its choices is kept; see `ShareSamples`. */
  readonly sampledAfterMs: number;
  /** Note that an example is kept. @param untilMs monotonic time of the next one */
  sampled(untilMs: number): void;
  /** Select the member that receives a message. @returns undefined if no member may receive it */
  choose(message: Message): Subscription | undefined;
}

/**
 * The receivers of the messages of one topic; valid until a subscription changes.
 *
 * A route that is removed from the cache loses its targets. Callers must therefore read the targets before they call code that may change
 * subscriptions, or test `Routing.isFresh` afterwards.
 */
export interface Route {
  readonly topic: string;
  /** The bytes of the topic, as in packets; empty if the route is not in the table of `Routing.resolve`. */
  readonly bytes: Buffer;
  /** A `TopicKind`. */
  readonly kind: number;
  /** True if a filter of `Routing.watch` matches the topic. */
  readonly isObserved: boolean;
  /** True if runs of frames of the topic may be forwarded unchanged: it is an ordinary topic, not observed, and without a schema. */
  readonly isForRuns: boolean;
  /** True if a PUBLISH of a client needs a decision even without hooks: the topic is below `$SYS`, or has a schema. */
  readonly mustDecide: boolean;
  /** The schemas that each payload has to match, in the order of the option. */
  readonly schemas: readonly TopicSchema[];
  /** The watchers of each message, in their order. */
  readonly watchers: readonly Watcher[];
  /** Number of levels of the topic. */
  readonly levels: number;
  /** True if the topic contains control characters or non-characters, which a zone may refuse. */
  readonly hasControls: boolean;
  /** One subscription for each subscriber; overlapping subscriptions are combined. */
  readonly targets: readonly Subscription[];
  readonly groups: readonly Group[];
  /** The version of `Routing` for which the route was computed; -1 after the route has lost its targets. */
  readonly version: number;
  isStale: boolean;
  generation: number;
  weight: number;
  /** The record of the last message that was dropped because there were no subscribers. */
  lastDrop: object | undefined;
  /** The count of such messages of one publisher. */
  repeatedDrop: object | undefined;
}
