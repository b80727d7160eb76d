import { execFileSync, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The failures that a store survives: the end of the process, or also loss of power. */
export type Durability = 'process' | 'power';

/** The additional configuration of embermq while it is measured, see `Row.observer`. */
export type Observer =
  | 'hook'
  | 'listener'
  | 'rules'
  | 'users'
  | 'rest'
  | 'webhook'
  | 'webhook-all'
  | 'schemas'
  | 'schemas-all'
  | 'sparkplug'
  | 'respond'
  | 'serve'
  | 'serve-tls'
  | 'serve-ws';

/** The name of a broker: one that is known here, or one of `brokers.json` in the folder of the peers. */
export type BrokerName = 'embermq' | 'aedes' | 'mosquitto' | 'min' | 'raw' | (string & {});

/** A broker that can be measured. */
export interface BrokerKind {
  readonly name: BrokerName;
  readonly version: string;
  /** Set for a broker of `brokers.json`: it is measured where mosquitto is, unless the row has a bridge. */
  readonly other?: {
    /** False: without the rows over MQTT 5.0. */
    readonly hasV5: boolean;
  };
  /**
   * The command that starts the broker in the foreground on 127.0.0.1:`port`. `folder` is a new folder for it.
   * @param store if set, the broker uses a store in that folder
   * @param observer of embermq, see `Row.observer`
   * @param farPort port of the broker that all messages are forwarded to
   * @throws Error if the broker has no store
   */
  command(port: number, folder: string, store?: Durability, observer?: Observer, farPort?: number): readonly string[];
}

/** A broker that was not found, and how to install it. */
export interface Absent {
  readonly name: BrokerName;
  readonly remedy: string;
}

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = packageRoot();

/** mosquitto without persistence, and with limits that drop no messages. 0 messages in flight (unlimited) would stall QoS 2 in version 2.0. */
export const MOSQUITTO_SETTINGS = [
  'allow_anonymous true',
  'persistence false',
  'max_inflight_messages 1000',
  'max_queued_messages 0',
  'max_queued_bytes 0',
  'max_connections -1',
  'set_tcp_nodelay true',
  'sys_interval 0',
  'log_type error'
];

/** The bridge of mosquitto. It uses the limits above as well. */
const MOSQUITTO_BRIDGE = ['topic # out 1', 'bridge_protocol_version mqttv50', 'notifications false'];

export interface FindOptions {
  /** The folder whose `node_modules` contains aedes. Default: the project. */
  readonly peers?: string;
  /** The folder for a CPU profile of embermq. */
  readonly profiles?: string;
  /** Options of embermq, as JSON, that override the measured ones. */
  readonly options?: string;
}

/** Find a broker on this machine. */
export function findBroker(
  name: BrokerName,
  { peers, profiles, options = '{}' }: FindOptions = {}
): BrokerKind | Absent {
  switch (name) {
    case 'embermq': {
      const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
      return kind(name, commit(version), (port, folder, store, observer, farPort) => {
        if (observer?.startsWith('serve')) return serveCommand({ port, folder, store, profiles, observer });
        return [
          process.execPath,
          program('brokers/embermq.js'),
          String(port),
          JSON.stringify({ ...JSON.parse(options), observer, folder, farPort }),
          store ?? 'none',
          join(folder, 'data'),
          ...(profiles === undefined ? [] : [profiles])
        ];
      });
    }
    case 'raw':
    case 'min':
      return kind(name, `Node ${process.versions.node}`, (port) => [
        process.execPath,
        program('support/relay.js'),
        name,
        String(port)
      ]);
    case 'aedes':
      return findAedes(peers);
    case 'mosquitto':
      return findMosquitto();
    default:
      return { name, remedy: 'describe it in brokers.json in the folder of --peers' };
  }
}

/** The entry of a broker in `brokers.json`. In texts of commands, `{port}`, `{folder}` (new and empty) and `{peers}` are replaced. */
interface OtherBroker {
  readonly name: string;
  /** The version, or a command that prints it. */
  readonly version: string | readonly string[];
  /** Starts the broker in the foreground on 127.0.0.1. */
  readonly command: readonly string[];
  /** Default true. */
  readonly v5?: boolean;
}

/** The brokers that `brokers.json` in the folder of the peers describes. @throws Error if an entry lacks something */
export function otherBrokers(peers: string | undefined): BrokerKind[] {
  const file = join(peers ?? ROOT, 'brokers.json');
  if (!existsSync(file)) return [];
  const entries = JSON.parse(readFileSync(file, 'utf8')) as readonly OtherBroker[];
  return entries.map(({ name, version, command, v5 = true }) => {
    if (typeof name !== 'string' || version === undefined || !Array.isArray(command))
      throw new Error(`${file}: expected name, version and command in each entry`);
    const filled = (parts: readonly string[], values: Readonly<Record<string, string>>) =>
      parts.map((part) => part.replace(/\{(\w+)\}/g, (text, key: string) => values[key] ?? text));
    const folders = { peers: dirname(file) };
    const known = typeof version === 'string' ? version : printedVersion(filled(version, folders));
    const start: BrokerKind['command'] = (port, folder) => filled(command, { ...folders, port: String(port), folder });
    return { ...kind(name, known, start), other: { hasV5: v5 } };
  });
}

/** Tell whether a broker is measured in a row. */
export function isMeasured({ name, other }: BrokerKind, { brokers, isBridged, task }: MeasuredRow): boolean {
  if (other === undefined) return brokers.includes(name);
  return brokers.includes('mosquitto') && isBridged !== true && (other.hasV5 || task.v5 !== true);
}

interface MeasuredRow {
  readonly brokers: readonly BrokerName[];
  readonly isBridged?: boolean;
  readonly task: { readonly v5?: boolean };
}

interface ServeSetup {
  readonly port: number;
  readonly folder: string;
  readonly store: Durability | undefined;
  readonly profiles: string | undefined;
  readonly observer: Observer;
}

/** The command of a user: `embermq serve`, with one port for MQTT as its only port. */
function serveCommand({ port, folder, store, profiles, observer }: ServeSetup): string[] {
  const profiling =
    profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`, '--cpu-prof-interval=500'];
  const state = store === undefined ? ['--memory'] : ['--data-dir', join(folder, 'data'), '--durability', store];
  const own = observer === 'serve-tls' ? 'mqtts' : observer === 'serve-ws' ? 'ws' : 'mqtt';
  const ports = ['mqtt', 'mqtts', 'ws', 'http', 'http-earlier', 'rules', 'http-push'].flatMap((name) => [
    `--${name}-port`,
    name === own ? String(port) : 'off'
  ]);
  const command = [process.execPath, ...profiling, join(ROOT, 'dist/adapters/cli/main.js'), 'serve'];
  return [...command, ...ports, ...(own === 'mqtts' ? makeIdentity(folder) : []), '--max-mqueue-len', '0', ...state];
}

/**
 * A certificate of a new authority, as flags of `serve`.
 * @throws if there is no `openssl` command
 */
function makeIdentity(folder: string): string[] {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const flags = ['req', '-x509', ...curve, '-nodes', '-subj', '/CN=localhost', '-keyout', key, '-out', cert];
  execFileSync('openssl', flags, { stdio: 'ignore' });
  return ['--key', key, '--cert', cert];
}

function findAedes(peers: string | undefined): BrokerKind | Absent {
  const from = createRequire(join(peers ?? ROOT, 'package.json'));
  try {
    const entry = from.resolve('aedes');
    const version = packageVersion(entry, 'aedes');
    return kind('aedes', version, (port, folder, store) => [
      process.execPath,
      program('brokers/aedes.js'),
      pathToFileURL(entry).href,
      String(port),
      ...(store === undefined
        ? []
        : [...['aedes-persistence-level', 'level'].map((name) => pathToFileURL(from.resolve(name)).href), folder])
    ]);
  } catch {
    return { name: 'aedes', remedy: 'npm install --prefix DIR aedes, then --peers DIR' };
  }
}

function findMosquitto(): BrokerKind | Absent {
  const path = findProgram('mosquitto');
  if (path === undefined) return { name: 'mosquitto', remedy: 'install mosquitto so that it is on the PATH' };
  return kind('mosquitto', printedVersion([path, '-h']), (port, folder, _store, _observer, farPort) => {
    const file = join(folder, 'mosquitto.conf');
    const bridged =
      farPort === undefined ? [] : ['connection far', `address 127.0.0.1:${farPort}`, ...MOSQUITTO_BRIDGE];
    writeFileSync(file, [`listener ${port} 127.0.0.1`, ...MOSQUITTO_SETTINGS, ...bridged, ''].join('\n'));
    return [path, '-c', file];
  });
}

/** Find a program on the PATH or in the usual folders of servers. */
export function findProgram(name: string): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The program is not in this folder.
    }
  }
  return undefined;
}

function kind(name: BrokerName, version: string, command: BrokerKind['command']): BrokerKind {
  return { name, version, command };
}

/** The path of a program of the benchmark. */
export function program(path: string): string {
  return join(HERE, '..', path);
}

/** The folder of the project, which contains the nearest package.json. */
function packageRoot(): string {
  let folder = HERE;
  while (true) {
    try {
      accessSync(join(folder, 'package.json'));
      return folder;
    } catch {
      folder = dirname(folder);
    }
  }
}

function packageVersion(entry: string, name: string): string {
  for (let folder = dirname(entry); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const file = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (file.name === name) return file.version;
    } catch {
      // This folder is inside the package.
    }
  }
  return 'unknown';
}

/** The version in the output of a command, whatever its exit status is: mosquitto prints its help and exits with 3. */
function printedVersion([program, ...args]: readonly string[]): string {
  const { stdout = '', stderr = '' } = spawnSync(program, args, { encoding: 'utf8' });
  return /\d+(\.\d+)+\S*/.exec(`${stdout}${stderr}`)?.[0] ?? 'unknown';
}

function commit(version: string): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const changed = git('status', '--porcelain', '--', 'lib', 'adapters') === '' ? '' : ' and changes';
    return `${version} (${git('rev-parse', '--short', 'HEAD').trim()}${changed})`;
  } catch {
    return version;
  }
}
