// Rules, stream rules and webhooks send to targets: a web server, another broker, a database, a file. A resource type
// opens a `Resource`, a sink type an `OpenSink`: both are targets, and an action of a broker rule can name either. The
// promises of the verbs are tests (`test/targets/target-contract.ts`), which every target runs. When an item is sent
// again is not decided by targets but by an outbox; `SendError` is how a target takes part in it.

import type { Awaitable } from '../events/hooks.ts';
import type { Attempt } from '../outbox/attempt.ts';
import type { OutboxOptions } from '../outbox/options.ts';

/** The limits of the outbox of a target, including `isPersisted`. */
export type TargetLimits = Omit<OutboxOptions, 'name' | 'label' | 'send' | 'settled'>;

/**
 * Something outside of a rule to which items are sent. Its type opens it: opening may be complete before there is a
 * connection, and fails if the target can never be used.
 */
export interface Target<Item> {
  /**
   * Check whether the target can be reached: connect, unless there is a connection. Absent if that cannot be found out.
   * @param signal aborted when the check takes too long
   * @throws the reason why the target cannot be reached
   */
  check?(signal: AbortSignal): Awaitable<void>;
  /**
   * Send an item. Returns, or resolves, when the target has what was sent.
   * @param attempt the delivery of the outbox; undefined if there is no outbox
   * @throws if the item should be sent again; `SendError` can be more specific
   */
  send(item: Item, attempt?: Attempt): Awaitable<void>;
  /** Release all resources. Called once; nothing is sent afterwards. */
  close(): Awaitable<void>;
}
