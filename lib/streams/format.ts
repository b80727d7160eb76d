import type { Column } from './types.ts';
import type { ValueObject } from './values/values.ts';

/** What a format is made for: the decoding of a stream, or the encoding of a sink. */
export interface FormatSetup {
  /** For messages: `stream "demo"`. */
  readonly what: string;
  /** The declared columns; undefined: there is no schema. */
  readonly columns?: readonly Column[] | undefined;
  /** The options of the stream by their names in upper case, or those of the sink: DELIMITER, SCHEMAID, ... */
  readonly options?: Readonly<Record<string, string>> | undefined;
  /** The columns that statements use; others need not be decoded. undefined: all. */
  readonly needed?: readonly string[] | undefined;
  /** Whole numbers of a stream without a schema are integers. Default false: they are floats. */
  readonly integers?: boolean | undefined;
}

/** Turns the payloads of a source into rows, and the outputs of rules into bytes. */
export interface Format {
  readonly name: string;
  /**
   * The rows of a payload. The bytes may change afterwards, so the rows do not refer to them.
   * @throws StreamFailure
   */
  decode(payload: Uint8Array): ValueObject | readonly ValueObject[];
  /** The bytes of a row, of several rows, or of a string that a template has made. @throws StreamFailure */
  encode(value: unknown): Buffer;
  /** What `encode` gives, as text. Absent: the format is no text, or has no use for it. @throws StreamFailure */
  text?(value: unknown): string;
}

/** A type of formats: the option FORMAT of streams, and the property `format` of sinks. */
export interface FormatType {
  /** In lower case. */
  readonly name: string;
  readonly about: string;
  /** @throws InvalidInput STREAM_INVALID: the setup does not suit the format */
  make(setup: FormatSetup): Format;
}

/** A format of the app that needs no setup: the option `formats` of streams. */
export interface StreamFormat {
  /** A letter, then at most 63 letters, digits, `_` or `-`; upper and lower case are the same. */
  readonly name: string;
  readonly about?: string;
  /** The row of a payload, or several rows. The bytes may change afterwards, so that rows must not refer to them. */
  decode(payload: Uint8Array): ValueObject | readonly ValueObject[];
  /** The bytes of a row, of several rows, or of a string that a template has made. */
  encode(value: unknown): Uint8Array | string;
}

/** The bytes as a Buffer, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
