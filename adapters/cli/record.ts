// The command is a proxy and no part of `serve`: what is worth recording is often the traffic of another broker, or of
// one that cannot be restarted. Traces, which `ctl traces` starts in a running broker, have decoded packets for people
// to read; a replay needs the bytes, of all clients, with the end of each connection.

import { placeOf } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import { recordTraffic } from '../testing/index.ts';
import { type Command, log } from './command.ts';
import { interrupted } from './dial.ts';
import { ENDPOINT_FLAGS, nameOf, openStream, readEndpoint } from './endpoint.ts';
import { describeFlags, flag, readFlags, timeFlag } from './flags.ts';

const { username: _username, password: _password, ...TARGET_FLAGS } = ENDPOINT_FLAGS;

/** The flags of the command that do not describe the broker. */
export const RECORD_OWN_FLAGS = {
  listen: flag('string', '127.0.0.1:1884', 'address for the clients: a port, or host:port; 0 is a free port', {
    value: 'ADDRESS',
    short: 'l'
  }),
  wait: timeFlag(0, 'end after this time', { short: 'W' }),
  passwords: flag('boolean', false, 'write the passwords of clients into the file')
};

/** All flags of the command. */
export const RECORD_FLAGS = { ...RECORD_OWN_FLAGS, ...TARGET_FLAGS };

/** Time in milliseconds for a connection to the broker. */
const CONNECT_TIMEOUT_MS = 10_000;

/** `embermq record`: record the traffic between clients and a broker, for `kit.replay` of the test kit. */
export const record: Command = {
  summary: 'record the traffic of a broker for tests',
  hasHostFlag: true,
  completed: () => ({ flags: RECORD_FLAGS, files: 'file' }),
  help: () => `usage: embermq record FILE [flags]

Stands between the clients and a broker of any make: clients connect to the address of --listen, and record connects to the broker for
each of them. Every packet is written to FILE with its time, and who has closed the connection, until SIGINT or SIGTERM. kit.replay(FILE)
of embermq/testing lets the clients do the same again in a test, in virtual time.

FILE must not exist, and is readable by its owner only: it has payloads and user names. Passwords are replaced by "redacted".

${describeFlags(RECORD_OWN_FLAGS)}

broker
${describeFlags(TARGET_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(RECORD_FLAGS, args);
    const [file, ...more] = words;
    if (!file || more.length > 0)
      throw new InvalidInput('FLAG_INVALID', 'FILE', 'a file', undefined, 'record needs one file: embermq record FILE');
    const { host, port } = readAddress(flags.listen);
    const endpoint = await readEndpoint({ ...flags, username: undefined, password: undefined }, shell);
    const signal = interrupted(shell);
    const recorder = await recordTraffic(file, {
      host,
      port,
      passwords: flags.passwords,
      connect: () => openStream(endpoint, AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)])),
      onError: ({ message }) => signal.aborted || log(shell, `embermq: ${message}`)
    });
    log(
      shell,
      `recording mqtt://${placeOf({ host, port: recorder.port })} -> ${nameOf(endpoint)} into ${file}; SIGINT ends`
    );
    const ended = flags.wait > 0 ? AbortSignal.any([signal, AbortSignal.timeout(flags.wait)]) : signal;
    const isOver = new Promise<void>((resolve) => {
      if (ended.aborted) resolve();
      else ended.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([isOver, recorder.ended]);
    await recorder.close();
    shell.stdout.write(`${file}: ${recorder.connections} connections, ${recorder.frames} packets\n`);
    return 0;
  }
};

/** @throws InvalidInput OPTION_INVALID */
function readAddress(text: string): { readonly host: string; readonly port: number } {
  const [, host = '127.0.0.1', port] = /^(?:\[?([^[\]]+?)\]?:)?(\d{1,5})$/.exec(text) ?? [];
  if (port !== undefined && Number(port) <= 65_535) return { host, port: Number(port) };
  throw new InvalidInput('OPTION_INVALID', '--listen', 'a port, or host:port', text);
}
