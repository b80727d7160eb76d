import type { Column } from './types.ts';
import type { StreamValueObject } from './values/values.ts';

/** The settings of a format, for decoding a stream or encoding for a sink. */
export interface FormatSetup {
  /** Name for messages: `stream "demo"`. */
  readonly what: string;
  /** The declared columns; undefined if there is no schema. */
  readonly columns?: readonly Column[] | undefined;
  /** The options of the stream, by name in upper case, or those of the sink: DELIMITER, SCHEMAID, ... */
  readonly options?: Readonly<Record<string, string>> | undefined;
  /** The columns that statements use; others need not be decoded. Undefined: all. */
  readonly needed?: readonly string[] | undefined;
  /** The schemas that were created at run time, by name. */
  readonly schemas?: Readonly<Record<string, string>> | undefined;
  /** If true, whole numbers of a stream without a schema are integers. Default false: they are floats. */
  readonly integers?: boolean | undefined;
}

/** Converts the payloads of a source to rows, and the outputs of rules to bytes. */
export interface Format {
  /** The name of the format. */
  readonly name: string;
  /**
   * Decode the rows of a payload. The bytes may change afterwards, so rows must not refer to them.
   * @throws StreamFailure
   */
  decode(payload: Uint8Array): StreamValueObject | readonly StreamValueObject[];
  /** Encode a row, several rows, or the string that a template has created. @throws StreamFailure */
  encode(value: unknown): Buffer;
  /** The result of `encode` as text. Absent if the format is binary, or has no use for it. @throws StreamFailure */
  text?(value: unknown): string;
}

/** A format type: the option FORMAT of streams, and the property `format` of sinks. */
export interface FormatType {
  /** In lower case. */
  readonly name: string;
  /** The description. */
  readonly about: string;
  /** @throws InvalidInput STREAM_INVALID if the setup does not suit the format */
  make(setup: FormatSetup): Format;
  /** Check the text of a schema that is created at run time. Absent: the format has no schemas. @throws InvalidInput, BrokerError */
  checkSchema?(name: string, text: string): void | Promise<void>;
}

/** A format of the app that needs no setup: the option `formats` of streams. */
export interface StreamFormat {
  /** A letter, then at most 63 letters, digits, `_` or `-`; case is not significant. */
  readonly name: string;
  /** A description. Default: empty. */
  readonly about?: string;
  /** Decode the row or rows of a payload. The bytes may change afterwards, so rows must not refer to them. */
  decode(payload: Uint8Array): StreamValueObject | readonly StreamValueObject[];
  /** Encode a row, several rows, or the string that a template has created. */
  encode(value: unknown): Uint8Array | string;
}

/** The bytes as a Buffer, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
