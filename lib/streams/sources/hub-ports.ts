import type { Clock } from '../../base/clock.ts';
import type { FormatType } from '../format.ts';
import type { ParseTime } from '../formats/convert-column.ts';
import type { StreamRecordStore, StreamTable } from '../host.ts';
import type { SourceType, StreamDefinition, StreamsOptions } from '../types.ts';

/** What the sources use of the service. */
export interface HubPorts {
  readonly clock: Clock;
  readonly dataDir: string | undefined;
  readonly sourceConfig: StreamsOptions['sourceConfig'];
  readonly parseTime: ParseTime;
  /** Formats of the app and of plugins. */
  formats(): readonly FormatType[];
  /** The type of a name. @throws NotFound SOURCE_NOT_FOUND */
  source(name: string): SourceType;
  /** The types of sources. */
  sources(): readonly SourceType[];
  /** The stream or table of a name. */
  find(name: string): StreamDefinition | undefined;
  readonly notes: StreamTable<string>;
  /** Name of the broker node. */
  readonly node: string;
  /** The records of rules; undefined: there is no store. */
  readonly records: Pick<StreamRecordStore, 'added' | 'committed'> | undefined;
  /** True if a rule with `qos` above 0 reads a stream and the broker has a store. */
  isKept(stream: string): boolean;
  /** Resolves when the rules that are being started are there. */
  ready(): Promise<void>;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Report an error that has no caller. */
  failed(error: unknown, during: string): void;
  /** Report something that is not an error, such as a property that has no effect. */
  warn(text: string): void;
}
