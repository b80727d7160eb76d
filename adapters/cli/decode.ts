// `mqtt-packet` reads the packets, because it also reads many that the broker refuses; `lib/decoder.ts` adds the reason of
// the broker. Bytes that are not a packet are shown in hexadecimal, but a CONNECT or AUTH that is refused has its password
// anywhere in what follows: from there on `SecretWatch` hides what is refused. Lines are written in chunks of 64 kB, as a
// write for each took a third of the time.

import { once } from 'node:events';
import { BrokerError, InvalidInput, type ProtocolVersion } from '../../lib/index.ts';
import { type Command, jsonLine, log, oneLine, printable, readFileFor, type Shell } from './command.ts';
import { shownFields } from './ctl/output.ts';
import { describeFlags, flag, readFlags } from './flags.ts';
import { SecretWatch } from './secret-watch.ts';

/** The flags of the command. */
export const DECODE_FLAGS = {
  protocol: flag(
    'object',
    undefined as ProtocolVersion | undefined,
    'MQTT version: 3 (3.1), 4 (3.1.1) or 5; default: that of the first CONNECT or CONNACK',
    { value: 'VERSION', check: checkProtocol }
  ),
  hex: flag(
    'boolean',
    false,
    'the bytes are written in hexadecimal; spaces, line breaks, colons, commas and 0x are ignored'
  ),
  json: flag('boolean', false, 'print a line of JSON for each packet, with payloads up to 64 MB')
};

/** Maximum number of bytes of a payload, or of bytes that are not a packet, in a line for people. */
const SHOWN_BYTES = 64;
/** Maximum number of bytes that are not a packet in a line of JSON. */
const MAX_HEX_BYTES = 65_536;
/** Maximum number of bytes of a payload in a line of JSON: six times as many characters, if all are escaped, are still a valid string. */
const MAX_JSON_PAYLOAD_BYTES = 67_108_864;

/** The byte order mark that some editors write at the beginning of a text. */
const MARK = Buffer.from('\ufeff');
/** Number of characters that are written together. */
const OUTPUT_LENGTH = 65_536;

/** From the first quotation mark to the last one. */
const QUOTES = /".*"/s;
/** The beginning of a reason with a name that is too short for a password. */
const PROTOCOL_NAME = /^protocol name "\w{0,6}" /;

/** A frame of `embermq/decoder`. */
type Frame = import('../../lib/decoder.ts').Frame;
type Describe = typeof import('../../lib/decoder.ts').describePacket;

/** `embermq decode`: print packets from a file. */
export const decode: Command = {
  summary: 'print the packets in a file of bytes',
  completed: () => ({ flags: DECODE_FLAGS, files: 'file' }),
  help: () => `usage: embermq decode FILE|- [flags]

Prints the packets in a file, or in standard input: the bytes that one side of a connection has sent. Each line has the offset of a packet
and its fields, without passwords and authentication data. If embermq would refuse a packet, its line ends with the reason. Bytes that cannot
be read as a packet are shown in hexadecimal. The exit code is 1 if there is a refused packet or unreadable bytes.

From the first CONNECT or AUTH on that is refused or cannot be read, also where it begins inside another packet, only the number of bytes and
the reason are shown of everything that is refused or cannot be read, because it may be a part of a password. Packets without an error are
still shown.

${describeFlags(DECODE_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(DECODE_FLAGS, args);
    const path = readPath(words);
    const input = await (path === '-' ? readAll(shell) : readFileFor(shell, path));
    const name = path === '-' ? 'standard input' : oneLine(path);
    const bytes = flags.hex ? fromHex(name, input) : input;
    if (bytes.length === 0) log(shell, `${name} is empty`);
    const { decodeFrames, describePacket } = await import('../../lib/decoder.ts');
    const watch = new SecretWatch(bytes);
    const format = flags.json ? asJson : asLine;
    const output = new Output(shell);
    let code = 0;
    try {
      for (const frame of decodeFrames(bytes, flags.protocol)) {
        if (frame.fault !== undefined) code = 1;
        if (output.add(format(frame, describePacket, watch.hides(frame)))) await output.flush();
      }
      await output.flush();
    } catch (error) {
      if (!(error instanceof InvalidInput) || error.code !== 'OPTION_MISSING') throw error;
      const message = `${name} has neither a CONNECT nor a CONNACK that states the MQTT version; add --protocol 3, 4 or 5`;
      throw new InvalidInput(error.code, '--protocol', error.expected, undefined, message);
    }
    return code;
  }
};

function readPath([path, more]: readonly string[]): string {
  if (path !== undefined && path !== '' && more === undefined) return path;
  const message = 'decode needs one file: embermq decode FILE, or - for standard input';
  throw new InvalidInput('FLAG_INVALID', 'FILE', 'one file', more, message);
}

function checkProtocol(value: unknown, field: string): ProtocolVersion {
  const version = Number(value);
  if (version === 3 || version === 4 || version === 5) return version;
  throw new InvalidInput('OPTION_INVALID', field, '3, 4 or 5', value);
}

async function readAll({ stdin }: Shell): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/**
 * The bytes of hexadecimal text. It is read byte by byte, because a string has at most 512 MB.
 * @throws BrokerError HEX_INVALID
 */
function fromHex(name: string, input: Buffer): Buffer {
  const bytes = Buffer.alloc(Math.ceil(input.length / 2));
  const start = input.subarray(0, MARK.length).equals(MARK) ? MARK.length : 0;
  let digits = 0;
  let isBetween = true; // after a separator, where 0x may stand
  for (let at = start; at < input.length; at++) {
    const byte = input[at];
    if (isSeparator(byte)) {
      isBetween = true;
      continue;
    }
    if (isBetween && byte === 0x30 && (input[at + 1] | 0x20) === 0x78 && digitOf(input[at + 2]) >= 0) {
      isBetween = false;
      at++;
      continue;
    }
    isBetween = false;
    const digit = digitOf(byte);
    if (digit < 0) throw hexInvalid(name, `${positionOf(input, at)} is not a hexadecimal digit`);
    bytes[digits >>> 1] |= (digits & 1) === 0 ? digit << 4 : digit;
    digits++;
  }
  if (digits % 2 === 1) throw hexInvalid(name, 'the number of hexadecimal digits is odd');
  return bytes.subarray(0, digits / 2);
}

function hexInvalid(name: string, fault: string): BrokerError {
  return new BrokerError('HEX_INVALID', `${name}: ${fault}`);
}

/** White space, a colon or a comma. */
function isSeparator(byte: number): boolean {
  return byte === 0x20 || (byte >= 9 && byte <= 13) || byte === 0x3a || byte === 0x2c;
}

/** The value of a hexadecimal digit; -1 for other bytes and undefined. */
function digitOf(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = (byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/** The line, the column and the character at an offset of a text. A character that may be invisible is written as U+XXXX. */
function positionOf(text: Buffer, at: number): string {
  const start = at === 0 ? 0 : text.lastIndexOf(10, at - 1) + 1;
  let line = 1;
  for (let end = text.indexOf(10); end >= 0 && end < start; end = text.indexOf(10, end + 1)) line++;
  const [character] = text.toString('utf8', at, at + 4);
  const code = character.codePointAt(0) as number;
  const shown = /[!-~]/.test(character) ? `"${character}"` : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return `line ${line}, column ${at - start + 1}: ${shown}`;
}

/** @param isHidden true if the content of the frame may have a password */
function asJson({ offset, bytes, packet, fault }: Frame, describe: Describe, isHidden: boolean): string {
  const content = isHidden
    ? { packet: packet?.cmd }
    : packet === undefined
      ? unreadable(bytes)
      : describe(packet, { maxPayloadBytes: MAX_JSON_PAYLOAD_BYTES });
  return jsonLine({ offset, bytes: bytes.length, ...content, error: reasonOf(fault, isHidden) });
}

/** The beginning of bytes that are not a packet. */
function unreadable(bytes: Buffer): object {
  return { hex: bytes.toString('hex', 0, MAX_HEX_BYTES), ...(bytes.length > MAX_HEX_BYTES && { truncated: true }) };
}

/** @param isHidden true if the content of the frame may have a password */
function asLine({ offset, bytes, packet, fault }: Frame, describe: Describe, isHidden: boolean): string {
  const reason = reasonOf(fault, isHidden)?.replaceAll('\n', ' ');
  if (packet === undefined) {
    const cut = bytes.length > SHOWN_BYTES ? '...' : '';
    const hex = isHidden ? '' : `: ${bytes.toString('hex', 0, SHOWN_BYTES)}${cut}`;
    return printable(`${offset} not a packet: ${reason}; ${bytes.length} bytes${hex}`);
  }
  const { packet: name, ...fields } = isHidden
    ? { packet: packet.cmd, bytes: bytes.length }
    : describe(packet, { maxPayloadBytes: SHOWN_BYTES });
  const end = reason === undefined ? '' : ` refused: ${reason}`;
  return printable(`${`${offset} ${name} ${shownFields(fields)}`.trimEnd()}${end}`);
}

/** The reason of a refusal. Reasons quote names from the packet, which are parts of a password if the names have wrong lengths. */
function reasonOf(fault: string | undefined, isHidden: boolean): string | undefined {
  if (fault === undefined || !isHidden) return fault;
  return PROTOCOL_NAME.test(fault) ? fault : fault.replace(QUOTES, '"..."');
}

/** The lines that are not written yet. Written one by one, they would take a third of the time. */
class Output {
  readonly #stdout: Shell['stdout'];
  #text = '';

  constructor({ stdout }: Shell) {
    this.#stdout = stdout;
  }

  /** @returns whether the lines are to be written now */
  add(line: string): boolean {
    this.#text += `${line}\n`;
    return this.#text.length >= OUTPUT_LENGTH;
  }

  async flush(): Promise<void> {
    const text = this.#text;
    this.#text = '';
    if (text !== '' && !this.#stdout.write(text)) await once(this.#stdout, 'drain');
  }
}
