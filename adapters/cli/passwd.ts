import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { editPasswordFile } from '../auth/password-file/index.ts';
import type { Command, Shell } from './command.ts';
import { INTERRUPTED } from './dial.ts';
import { describeFlags, flag, readFlags } from './flags.ts';

const PASSWD_FLAGS = {
  delete: flag('boolean', false, 'delete the user'),
  scram: flag('boolean', false, 'also store credentials for SCRAM-SHA-256 and SCRAM-SHA-512 (MQTT 5.0)'),
  cost: flag(
    'integer',
    14,
    'cost of the scrypt hash, 10 to 20; each increment doubles the time and the memory of a login',
    { value: 'N', min: 10, max: 20 }
  )
};

/** Maximum size of standard input. MQTT passwords have at most 65,535 bytes. */
const MAX_INPUT_BYTES = 262_144;

/** `embermq passwd`: add, change and delete the users of a password file. */
export const passwd: Command = {
  summary: 'add, change or delete a user of a password file',
  completed: () => ({ flags: PASSWD_FLAGS, files: 'file' }),
  help: () => `usage: embermq passwd FILE USER [flags]

Sets the password of a user in a password file (serve --password-file FILE), and creates the file if it does not exist. On a terminal it
asks for the password twice and shows nothing of it. Otherwise it reads the password from standard input: one line, or two equal ones.
A running broker reads the file again on SIGHUP.

${describeFlags(PASSWD_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(PASSWD_FLAGS, args);
    const [file, name, ...more] = words;
    if (!file || !name || more.length > 0) throw wrongWords(more.length > 0); // the message must not contain a password
    const password = flags.delete ? undefined : await readPassword(name, shell);
    if (password === INTERRUPTED) return INTERRUPTED;
    const { scram, cost } = flags;
    const edit = await editPasswordFile(file, name, password, { scram, cost });
    shell.stdout.write(`${file}: ${edit} user "${name}"\n`);
    return 0;
  }
};

function wrongWords(isMore: boolean): InvalidInput {
  const hint = isMore ? '; the password is asked for, or read from standard input' : '';
  const message = `passwd needs a file and a user: embermq passwd FILE USER${hint}`;
  return new InvalidInput('FLAG_INVALID', 'FILE USER', 'a file and a user', undefined, message);
}

/**
 * Read a password from standard input; on a terminal, ask for it twice.
 * @returns the exit code if the user has interrupted the input
 * @throws BrokerError if there is none
 */
export async function readPassword(name: string, shell: Shell): Promise<Buffer | typeof INTERRUPTED> {
  const { stdin } = shell;
  if (stdin.isTTY === true && stdin.setRawMode !== undefined) return askTwice(name, shell);
  const lines = await readLines(shell);
  if (lines.length === 0) throw passwordError('standard input has no password');
  if (lines.length > 2) throw passwordError('standard input has more than two lines; it must have the password only');
  return equal(lines[0], lines[1] ?? lines[0]);
}

/** The lines of standard input. Bytes that are not UTF-8 are kept. */
async function readLines({ stdin }: Shell): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) throw passwordError('standard input is longer than two passwords can be');
  }
  const lines = Buffer.concat(chunks).toString('latin1').split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line) => Buffer.from(line, 'latin1'));
}

/** Ask twice on the terminal, without an echo. */
async function askTwice(name: string, { stdin, stderr }: Shell): Promise<Buffer | typeof INTERRUPTED> {
  stdin.setRawMode?.(true);
  try {
    const lines: Buffer[] = [];
    const typed = typedLines(stdin);
    for (const question of [`password of ${name}: `, 'again: ']) {
      stderr.write(question);
      const { value } = await typed.next();
      stderr.write('\n');
      if (value === 'interrupted') return INTERRUPTED;
      if (value === undefined) throw passwordError('no password was entered');
      lines.push(value);
    }
    return equal(lines[0], lines[1]);
  } finally {
    stdin.setRawMode?.(false);
    stdin.pause();
  }
}

const KEYS = {
  interrupt: 0x03,
  end: 0x04,
  backspace: 0x08,
  newline: 0x0a,
  enter: 0x0d,
  erase: 0x15,
  delete: 0x7f
} as const;

/** The lines typed on a terminal in raw mode. Ends at the end of the input; yields `interrupted` for Ctrl+C. */
async function* typedLines(stdin: Shell['stdin']): AsyncGenerator<Buffer | 'interrupted', undefined> {
  let line: number[] = [];
  for await (const chunk of stdin.iterator({ destroyOnReturn: false }))
    for (const byte of Buffer.from(chunk)) {
      if (byte === KEYS.interrupt) yield 'interrupted';
      else if (byte === KEYS.enter || byte === KEYS.newline) {
        yield Buffer.from(line);
        line = [];
      } else if (byte === KEYS.end) return undefined;
      else if (byte === KEYS.erase) line = [];
      else if (byte === KEYS.backspace || byte === KEYS.delete) {
        while (line.length > 0 && (line[line.length - 1] & 0xc0) === 0x80) line.pop(); // the other bytes of the character
        line.pop();
      } else line.push(byte);
    }
  return undefined;
}

function equal(first: Buffer, second: Buffer): Buffer {
  if (!first.equals(second)) throw passwordError('the two passwords differ');
  if (first.length === 0) throw passwordError('the password is empty');
  if (first.length > 65_535) throw passwordError('the password has more than 65,535 bytes, the limit of MQTT');
  return first;
}

function passwordError(message: string): BrokerError {
  return new BrokerError('PASSWORD_INVALID', message);
}
