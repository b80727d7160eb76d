import type * as kit from '../rest/kit/index.ts';
import { operation as define } from '../rest/kit/index.ts';
import type { OptionOrigin } from './options.ts';
import type { PagePositions } from './page-positions.ts';
import type { Revision } from './revisions.ts';
import type { EventStreams } from './streams/event-stream.ts';

/** Members that only the management interface has in the context of a call. */
export interface ManagementMembers {
  readonly revision: Revision;
  /** The operations of the mount, in the order of the index. */
  readonly operations: readonly Operation[];
  /** With `errors: 'original'`: missing objects are not an error where the original products do not report one. */
  readonly isOriginal: boolean;
  /** True if the mount has operations for applications (option `appOperations`). */
  readonly appOperations: boolean;
  /** The event streams of the mount. */
  readonly streams: EventStreams;
  /** The positions at which pages of the lists of the mount have ended. */
  readonly positions: PagePositions;
  /**
   * Check whether a hash is that of the secret or password in the request.
   * @throws InvalidInput if the hash is not valid
   */
  isSecret(hash: string): Promise<boolean>;
  /** Returns the source of an option's value; see `ManagementOptions`. */
  readonly optionSource: OptionOrigin | undefined;
}

export type Context = kit.Context<ManagementMembers>;
export type Operation<T extends kit.RowTypes = kit.RowTypes> = kit.Operation<ManagementMembers, T>;

/** Define an operation of the management interface. */
export const operation = define<
  ManagementMembers,
  'errorPrefix' | 'filename' | 'first' | 'hasExactNumbers' | 'notJson' | 'refusal' | 'status'
>();
