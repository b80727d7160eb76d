import { BROKER_OPTIONS, InvalidInput, ZONE_OPTIONS } from '../../lib/index.ts';
import { ws } from '../net/index.ts';
import { describeFlags, type FlagTable, flag, timeFlag } from './flags.ts';

/** A port of the command: a number, where 0 takes a free one, or `off`. */
export type Port = number | 'off';

const FILE = { value: 'FILE', check: notEmpty('a file') };

/** What the command itself can be told. Each is a flag, a key of the config file and an environment variable. */
export const SERVE_OPTIONS = {
  host: flag('text', '127.0.0.1', 'address to bind', { value: 'ADDRESS', check: notEmpty('an address') }),
  mqttPort: port(1883, 'MQTT over TCP'),
  mqttsPort: port('off', 'MQTT over TLS; with --cert and --key 8883, unless --wss-port is given'),
  wsPort: port(8083, 'MQTT over WebSocket, path /mqtt'),
  wssPort: port('off', 'MQTT over secure WebSocket; needs --cert and --key'),
  wsOrigins: flag(
    'object',
    undefined as readonly string[] | undefined,
    'origins of web pages that may connect besides loopback ones, with commas between; any: every page',
    { value: 'LIST', check: checkOrigins }
  ),
  cert: flag('text', undefined as string | undefined, 'certificate chain of the TLS listeners, PEM', FILE),
  key: flag('text', undefined as string | undefined, 'private key of the certificate, PEM', FILE),
  ca: flag(
    'text',
    undefined as string | undefined,
    'let in only clients with a certificate of these authorities, PEM',
    FILE
  ),
  drainTimeout: timeFlag(10_000, 'how long SIGTERM waits for clients to take what is theirs'),
  dataDir: flag('text', './data', 'folder of the state that survives this process; made if it is not there', {
    value: 'DIR',
    check: notEmpty('a folder')
  }),
  durability: flag(
    'choice',
    'process' as 'process' | 'power',
    'what that survives: the end of the process, or loss of power',
    {
      choices: ['process', 'power'],
      value: 'process|power'
    }
  ),
  verifyStore: flag(
    'boolean',
    true,
    'at start, compare the checksums of all files in that folder (some 300 MB a second); off, damage may go unseen'
  ),
  reserve: flag(
    'size',
    undefined as number | undefined,
    'disk space that the folder keeps for when the disk is full; 64 MB or a fifth of the file system if that is less, 0: none',
    { value: 'SIZE' }
  ),
  memory: flag(
    'boolean',
    false,
    'keep all state in memory: it ends with this process; not with --data-dir, --durability, --verify-store or --reserve'
  ),
  verbose: flag('boolean', false, 'tell of every client that comes and goes', { short: 'v' })
};

/** Only on the command line and in the environment: it says where the rest is. */
export const CONFIG_FLAG = {
  config: flag('text', undefined as string | undefined, 'read options from a JSON or YAML file', {
    ...FILE,
    short: 'c'
  })
};

/** Options of the library that are lists or tables of their own: JSON in the environment and as flags. */
const STRUCTURED = {
  zones: flag('object', undefined as unknown, 'settings of single zones', { value: 'JSON' }),
  rewrite: flag('object', undefined as unknown, 'rewrite rules for topics', { value: 'JSON' }),
  autoSubscriptions: flag('object', undefined as unknown, 'subscriptions made for every client', { value: 'JSON' })
};

/** Every option of the library that can be written down. */
export const LIBRARY_OPTIONS: FlagTable = { ...ZONE_OPTIONS, ...BROKER_OPTIONS, ...STRUCTURED };

function port(value: Port, about: string) {
  return flag('object', value, `${about}; 0 takes a free one, off leaves it out`, { check: checkPort, value: 'PORT' });
}

/** By what a listener takes, so that the error names the flag. */
function checkOrigins(value: unknown): unknown {
  const origins = typeof value === 'string' ? value.split(',').map((origin) => origin.trim()) : value;
  ws({ port: 0, origins: origins as string[] });
  return origins;
}

function notEmpty(expected: string) {
  return (value: unknown, field: string): unknown => {
    if (value === '') throw new InvalidInput('OPTION_INVALID', field, expected, value);
    return value;
  };
}

function checkPort(value: unknown, field: string): Port {
  if (value === 'off' || value === false) return 'off';
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (Number.isInteger(number) && (number as number) >= 0 && (number as number) <= 65_535) return number as number;
  throw new InvalidInput('OPTION_INVALID', field, 'a port from 0 to 65535, or off', value);
}

/** What `embermq help options` prints. */
export function optionsHelp(): string {
  return `options of the library, as flags of serve; 0 and off mean what the line says

${describeFlags(LIBRARY_OPTIONS)}`;
}
