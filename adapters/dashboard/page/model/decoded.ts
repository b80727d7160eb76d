// Reading of binary payloads. A payload may be cut, damaged or hostile, so every reader is bounded, and shows what it has read before a fault.

/** The text of a payload, and the fault at which reading ended. */
export interface Decoded {
  readonly text: string;
  readonly fault?: Fault | undefined;
}

/**
 * Faults of a payload.
 * - `ends`: the payload ends inside of a value, or a length is greater than the rest of what contains the value
 * - `deep`: more values are nested than are read
 * - `many`: there are more values than are read
 * - `wrong`: the bytes do not belong to the format
 * - `rest`: bytes follow the value
 */
export type FaultCode = 'ends' | 'deep' | 'many' | 'wrong' | 'rest';

/** A fault of a payload, and the offset of the byte at which it was found. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly at: number;

  constructor(code: FaultCode, at: number) {
    super(`${code} at byte ${at}`);
    this.code = code;
    this.at = at;
  }
}

/** Maximum number of values in one another. */
export const MAX_DEPTH = 64;
/** Maximum number of values of a payload that are read. */
export const MAX_VALUES = 20_000;

/** Reads bytes one after the other. Nothing is read beyond the end, whatever a length says. */
export class Bytes {
  readonly all: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #values = 0;

  constructor(all: Uint8Array) {
    this.all = all;
    this.#view = new DataView(all.buffer, all.byteOffset, all.byteLength);
  }

  /** The offset of the next byte. */
  get at(): number {
    return this.#at;
  }

  /** Count a value. @throws Fault `many` */
  count(): void {
    if (++this.#values > MAX_VALUES) throw new Fault('many', this.#at);
  }

  /** Move behind the next bytes. @returns their offset @throws Fault `ends` */
  skip(count: number | bigint, end = this.all.length): number {
    const at = this.#at;
    if (count > end - at) throw new Fault('ends', at);
    this.#at += Number(count);
    return at;
  }

  byte(end?: number): number {
    return this.all[this.skip(1, end)];
  }

  take(count: number | bigint, end?: number): Uint8Array {
    const at = this.skip(count, end);
    return this.all.subarray(at, this.#at);
  }

  /** Read a number of the view: `take(4)` bytes as a 32-bit float. */
  view<T>(size: number, read: (view: DataView, at: number) => T, end?: number): T {
    return read(this.#view, this.skip(size, end));
  }
}

/** Bytes in hexadecimal as CBOR's notation has them: `h'00ff'`. */
export function hexOf(bytes: Uint8Array): string {
  return `h'${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}'`;
}
