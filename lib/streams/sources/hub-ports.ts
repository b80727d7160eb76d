import type { Clock } from '../../base/clock.ts';
import type { FormatType } from '../format.ts';
import type { ParseTime } from '../formats/convert-column.ts';
import type { StreamRecordStore, StreamTable } from '../host.ts';
import type { SourceType, StreamDefinition } from '../types.ts';
import type { SourceSections } from './stream-settings.ts';

/** Dependencies of the sources on the service. */
export interface HubPorts {
  readonly clock: Clock;
  readonly dataDir: string | undefined;
  readonly sections: SourceSections;
  readonly parseTime: ParseTime;
  /** Formats of the app and of plugins. */
  formats(): readonly FormatType[];
  /** The source type of a name. @throws NotFound SOURCE_NOT_FOUND */
  source(name: string): SourceType;
  /** All source types. */
  sources(): readonly SourceType[];
  /** The stream or table of a name. */
  find(name: string): StreamDefinition | undefined;
  readonly notes: StreamTable<string>;
  /** Name of the broker node. */
  readonly node: string;
  /** The records of rules; undefined if there is no store. */
  readonly records: Pick<StreamRecordStore, 'added' | 'committed'> | undefined;
  /** True if a rule with `qos` above 0 reads a stream and the broker has a store. */
  isKept(stream: string): boolean;
  /** Resolves when the rules that are being started are ready. */
  ready(): Promise<void>;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
  /** Report a condition that is not an error, such as a property without effect. */
  warn(text: string): void;
}
