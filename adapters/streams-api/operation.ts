import type { StreamsApi } from '../../lib/index.ts';
import type * as kit from '../rest/kit/index.ts';
import { operation as define } from '../rest/kit/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';

/** Members that only the interface of streams has in the context of a call. */
export interface StreamsMembers {
  readonly streams: StreamsApi;
  /** @throws Fault if the mount has no plugins */
  readonly plugins: PluginsApi;
  /** True if the client prefers JSON to text. */
  readonly wantsJson: boolean;
}

export type Operation<T extends kit.RowTypes = kit.RowTypes> = kit.Operation<StreamsMembers, T>;

/** Define an operation of the interface of streams. */
export const operation = define<
  StreamsMembers,
  | 'hasCursor'
  | 'in'
  | 'isForApplications'
  | 'isStream'
  | 'named'
  | 'originalAnswer'
  | 'originalBody'
  | 'originalQuery'
  | 'paged'
  | 'shown'
>();
