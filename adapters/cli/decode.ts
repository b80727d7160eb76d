import { once } from 'node:events';
import { BrokerError, InvalidInput, type ProtocolVersion } from '../../lib/index.ts';
import { type Command, log, printable, readFileFor, type Shell } from './command.ts';
import { shownFields } from './ctl/output.ts';
import { describeFlags, flag, readFlags } from './flags.ts';

/** The flags of the command. */
export const DECODE_FLAGS = {
  protocol: flag(
    'object',
    undefined as ProtocolVersion | undefined,
    'MQTT version: 3 (3.1), 4 (3.1.1) or 5; default: that of the first CONNECT or CONNACK',
    { value: 'VERSION', check: checkProtocol }
  ),
  hex: flag('boolean', false, 'the bytes are written in hexadecimal; spaces, line breaks, colons and 0x are ignored'),
  json: flag('boolean', false, 'print a line of JSON for each packet, with whole payloads')
};

/** Maximum number of bytes of a payload, or of bytes that are not a packet, in a line for people. */
const SHOWN_BYTES = 64;

/** A frame of `embermq/decoder`. */
type Frame = import('../../lib/decoder.ts').Frame;
type Describe = typeof import('../../lib/decoder.ts').describePacket;

/** `embermq decode`: print packets from a file. */
export const decode: Command = {
  summary: 'print the packets in a file of bytes',
  help: () => `usage: embermq decode FILE|- [flags]

Prints the packets in a file, or in standard input: the bytes that one side of a connection has sent. Each line has the offset of a packet
and its fields, without passwords and authentication data. A packet that embermq refuses has the reason; what cannot be read is shown in
hexadecimal. The exit code is 1 if there is such a packet.

${describeFlags(DECODE_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(DECODE_FLAGS, args);
    const path = readPath(words);
    const input = await (path === '-' ? readAll(shell) : readFileFor(shell, path));
    const name = path === '-' ? 'standard input' : path;
    const bytes = flags.hex ? fromHex(name, input) : input;
    if (bytes.length === 0) log(shell, `${name.replaceAll('\n', '\\n')} is empty`);
    const { decodeFrames, describePacket } = await import('../../lib/decoder.ts');
    let code = 0;
    try {
      for (const frame of decodeFrames(bytes, flags.protocol)) {
        if (frame.fault !== undefined) code = 1;
        await write(shell, flags.json ? asJson(frame, describePacket) : asLine(frame, describePacket));
      }
    } catch (error) {
      if (!(error instanceof InvalidInput) || error.code !== 'OPTION_MISSING') throw error;
      const message = `${name} has neither a CONNECT nor a CONNACK, which would tell the MQTT version; add --protocol 3, 4 or 5`;
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

/** @throws BrokerError HEX_INVALID */
function fromHex(name: string, input: Buffer): Buffer {
  const digits = input.toString('latin1').replace(/\b0x(?=[\da-f])|[\s:,]/gi, '');
  const wrong = /[^\da-f]/i.exec(digits);
  const fault =
    wrong !== null
      ? `${JSON.stringify(wrong[0])} is not a hexadecimal digit`
      : digits.length % 2 === 1
        ? 'the number of hexadecimal digits is odd'
        : undefined;
  if (fault !== undefined) throw new BrokerError('HEX_INVALID', `${name}: ${fault}`);
  return Buffer.from(digits, 'hex');
}

function asJson({ offset, bytes, packet, fault: error }: Frame, describe: Describe): string {
  const content = packet === undefined ? { hex: bytes.toString('hex') } : describe(packet);
  return JSON.stringify({ offset, bytes: bytes.length, ...content, error });
}

function asLine({ offset, bytes, packet, fault }: Frame, describe: Describe): string {
  const head = `${offset} `;
  if (packet === undefined) {
    const cut = bytes.length > SHOWN_BYTES ? '...' : '';
    const hex = bytes.toString('hex', 0, SHOWN_BYTES);
    return printable(`${head}not a packet: ${fault}; ${bytes.length} bytes: ${hex}${cut}`.replaceAll('\n', ' '));
  }
  const { packet: name, ...fields } = describe(packet, { maxPayloadBytes: SHOWN_BYTES });
  const reason = fault === undefined ? '' : ` refused: ${fault}`.replaceAll('\n', ' ');
  return printable(`${`${head}${name} ${shownFields(fields)}`.trimEnd()}${reason}`);
}

async function write({ stdout }: Shell, line: string): Promise<void> {
  if (!stdout.write(`${line}\n`)) await once(stdout, 'drain');
}
