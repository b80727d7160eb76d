import type { Frame } from '../../lib/decoder.ts';

/** Types of packets whose bytes may have passwords or authentication data: CONNECT and AUTH. */
const SECRET_TYPES: ReadonlySet<number> = new Set([1, 15]);

/** The beginning of the variable header of a CONNECT: the protocol name with its length. */
const PROTOCOL_NAMES: readonly Buffer[] = [Buffer.from('\0\u0004MQTT'), Buffer.from('\0\u0006MQIsdp')];

/** Number of bytes before the end of a frame in which a CONNECT or AUTH may begin that was not found yet. */
const OVERLAP_BYTES = 8;

/**
 * Finds the frames of an input whose content may have a password or authentication data.
 *
 * If a length of a packet is wrong, the frames after it begin at wrong places, and one of them may be a part of a CONNECT. So once a CONNECT
 * or AUTH is refused, or one begins where frames are refused, the content of all later refused frames is hidden.
 */
export class SecretWatch {
  readonly #input: Uint8Array;
  /** The bytes from this offset on are not searched for the beginning of a CONNECT or AUTH yet. */
  #from = 0;
  #isHiding = false;

  constructor(input: Uint8Array) {
    this.#input = input;
  }

  /** Tell whether the content of a frame must not be shown. Called once for each frame of the input, in their order. */
  hides({ offset, bytes, fault }: Frame): boolean {
    const end = offset + bytes.length;
    const isSecret = SECRET_TYPES.has(bytes[0] >>> 4);
    if (fault === undefined) {
      if (isSecret) this.#from = end;
      return false;
    }
    this.#isHiding ||=
      isSecret || hasLogin(Buffer.from(this.#input.buffer, this.#input.byteOffset).subarray(this.#from, end));
    this.#from = Math.max(this.#from, end - OVERLAP_BYTES);
    return this.#isHiding;
  }
}

/** Tell whether a CONNECT or AUTH may begin among bytes. */
function hasLogin(bytes: Buffer): boolean {
  if (PROTOCOL_NAMES.some((name) => bytes.includes(name))) return true;
  for (let at = bytes.indexOf(0xf0); at >= 0; at = bytes.indexOf(0xf0, at + 1)) if (isAuth(bytes, at)) return true;
  return false;
}

/** Tell whether bytes are those of an AUTH: its type, a length, and a reason code that AUTH has. */
function isAuth(bytes: Buffer, at: number): boolean {
  let end = at + 1;
  while (end < at + 4 && bytes[end] >= 0x80) end++;
  return [0x00, 0x18, 0x19].includes(bytes[end + 1]);
}
