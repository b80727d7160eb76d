// Each line of the file is given to a row of a table, which takes it over or returns the reason why it does not. A
// line without a row is listed as unknown. So no line can be lost.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInput } from '../../../lib/index.ts';
import { readFileFor, type Shell } from '../command.ts';
import { Draft, entryOf, isOn, located, type SourceLine, type Verdict } from './draft.ts';
import { rulesOfMosquitto } from './mosquitto-acl.ts';
import { BRIDGE_ROWS, bridgeOf, type MosquittoBridge, writeBridge } from './mosquitto-bridges.ts';
import {
  collect,
  LISTENER_SETTINGS,
  type MosquittoListener,
  REFUSED_OF_LISTENERS,
  writeListener
} from './mosquitto-listeners.ts';

const AT_ONCE = 'has no effect here: each acknowledged change is in the store already';
const OF_SERVICE = 'is a matter of the service manager (see "Run it as a service")';
const OF_LOG = 'has no effect: the log goes to standard error';
const OF_CODE = 'plugins in C cannot be loaded: use a source of the list "auth", or hooks in JavaScript';

/** The state while lines are read. */
interface Reading {
  readonly draft: Draft;
  readonly shell: Shell;
  readonly listeners: MosquittoListener[];
  readonly bridges: MosquittoBridge[];
  /** The settings that concern security, by name; of the whole broker, or of each listener with per_listener_settings. */
  readonly security: Map<MosquittoListener | undefined, Map<string, SourceLine>>;
  isPerListener: boolean;
  isPersistent: boolean;
  noDelay: boolean | undefined;
}

type Row = string | ((line: SourceLine, reading: Reading) => Verdict);

/** A row that sets an option. */
const option =
  (key: string, read: (value: string) => unknown = Number): Row =>
  (line, { draft }) => {
    const value = read(line.value);
    if (value === undefined || Number.isNaN(value)) return 'the value is not valid';
    draft.set(line, key, value);
    return undefined;
  };

/** A row for a setting that is the same for the whole broker or for each listener. */
const security: Row = (line, reading) => {
  const owner = reading.isPerListener ? (reading.listeners.at(-1) as MosquittoListener) : undefined;
  const given = reading.security.get(owner) ?? new Map<string, SourceLine>();
  const earlier = given.get(line.name);
  if (earlier !== undefined) reading.draft.refuse(earlier, `line ${line.line} sets it again`);
  reading.security.set(owner, given.set(line.name, line));
  return undefined;
};

const UNITS: Readonly<Record<string, number>> = { h: 3_600, d: 86_400, w: 604_800, m: 2_592_000, y: 31_536_000 };
const LEVELS = ['error', 'warn', 'info', 'debug'];
const LOG_TYPES: Readonly<Record<string, string>> = {
  error: 'error',
  warning: 'warn',
  notice: 'info',
  information: 'info',
  debug: 'debug',
  all: 'debug'
};

/** A row for each setting that is not about a listener or a bridge. */
const ROWS: Readonly<Record<string, Row>> = {
  acl_file: security,
  allow_anonymous: security,
  password_file: security,
  psk_file: security,
  per_listener_settings: () => undefined, // read before
  persistence: (line, reading) => {
    reading.isPersistent = isOn(line.value);
    reading.draft.set(line, 'memory', !reading.isPersistent);
    return undefined;
  },
  max_inflight_messages: option('maxInflight', (value) => (value === '0' ? 65_535 : Number(value))),
  max_inflight_bytes: option('maxInflightBytes'),
  max_keepalive: option('maxKeepalive'),
  max_packet_size: option('maxPacketSize'),
  max_queued_bytes: option('maxMqueueBytes'),
  max_queued_messages: option('maxMqueueLen'),
  memory_limit: option('memoryHighWatermark'),
  queue_qos0_messages: option('mqueueStoreQos0', isOn),
  retain_available: option('retainAvailable', isOn),
  sys_interval: option('sysInterval', (value) => `${value}s`),
  upgrade_outgoing_qos: option('upgradeQos', isOn),
  persistent_client_expiration: (line, { draft }) => {
    const [, count, unit] = /^(\d+)([hdwmy])$/.exec(line.value) ?? [];
    if (unit === undefined) return 'expected a number and one of h, d, w, m, y';
    const seconds = Number(count) * UNITS[unit];
    draft.set(line, 'sessionExpiryInterval', seconds);
    draft.config.maxSessionExpiryInterval = seconds;
    return undefined;
  },
  set_tcp_nodelay: (line, reading) => {
    reading.noDelay = isOn(line.value);
    return undefined;
  },
  log_type: (line, { draft }) => {
    const level = entryOf(LOG_TYPES, line.value);
    if (level === undefined)
      return 'the log has the levels error, warn, info and debug; see logLevel, and embermq ctl traces';
    const given = draft.config.logLevel as string | undefined;
    draft.config.logLevel = LEVELS[Math.max(LEVELS.indexOf(level), LEVELS.indexOf(given ?? 'error'))];
    return undefined;
  },
  port: (line, { listeners }) => setDefault(line, listeners, { port: Number(line.value) }),
  bind_address: (line, { listeners }) => setDefault(line, listeners, { host: line.value }),
  listener: (line, { listeners }) => {
    const [port, host] = line.value.split(/\s+/);
    if (!/^\d+$/.test(port)) return 'expected a port';
    listeners.push({ head: line, port: Number(port), host, lines: [], given: new Map() });
    return undefined;
  },
  connection: (line, { bridges }) => {
    if (line.value === '') return 'the name of the bridge is missing';
    bridges.push(bridgeOf(line));
    return undefined;
  },
  allow_zero_length_clientid: ({ value }) =>
    isOn(value)
      ? undefined
      : 'clients without a client id are accepted, and get one; refuse them with the hook preConnect',
  allow_duplicate_messages:
    'has no effect: a client gets a message once for each of its subscriptions that match, or once, as MQTT allows',
  auto_id_prefix: 'has no effect: client ids that the broker assigns have a fixed prefix',
  auth_plugin: OF_CODE,
  plugin: OF_CODE,
  auth_plugin_deny_special_chars: OF_CODE,
  autosave_interval: AT_ONCE,
  autosave_on_changes: AT_ONCE,
  check_retain_source: 'see "Retained messages of publishers without rights" in the page about access rules',
  clientid_prefixes: 'refuse other client ids with the hook preConnect, or by access rules with %c',
  connection_messages: 'log lines about connections have the level info: set logLevel',
  log_dest: OF_LOG,
  log_facility: OF_LOG,
  log_timestamp: 'has no effect: the service manager adds times',
  log_timestamp_format: 'has no effect: the service manager adds times',
  message_size_limit: 'limits payloads; maxPacketSize limits whole packets, which are up to 64 kB larger',
  persistence_file: 'state of mosquitto cannot be read; the store is in the folder dataDir',
  persistence_location: 'state of mosquitto cannot be read; the store is in the folder dataDir, ./data by default',
  pid_file: OF_SERVICE,
  user: OF_SERVICE,
  retry_interval: 'mosquitto ignores it since version 1.5; here, retryInterval sends again to clients of MQTT 3',
  store_clean_interval: 'mosquitto ignores it since version 1.4'
};

/** Settings of both a bridge and the broker: within a bridge, they belong to it. */
function rowOf(name: string, reading: Reading): Row | undefined {
  if (/^(auth|plugin)_opt_/.test(name)) return OF_CODE;
  const bridge = reading.bridges.at(-1);
  if (bridge !== undefined && Object.hasOwn(BRIDGE_ROWS, name)) {
    const row = BRIDGE_ROWS[name];
    return typeof row === 'string' ? row : (line) => row(line.value, bridge, line);
  }
  if (LISTENER_SETTINGS.has(name))
    return (line) => collect(reading.listeners.at(-1) as MosquittoListener, line, reading.draft);
  if (Object.hasOwn(REFUSED_OF_LISTENERS, name)) return REFUSED_OF_LISTENERS[name];
  if (Object.hasOwn(ROWS, name)) return ROWS[name];
  return Object.hasOwn(BRIDGE_ROWS, name) ? 'belongs to a bridge: there is no line "connection" before it' : undefined;
}

function setDefault(line: SourceLine, [first]: MosquittoListener[], values: { port?: number; host?: string }): Verdict {
  if (Number.isNaN(values.port)) return 'expected a port';
  first.head ??= line;
  if (first.head !== line) first.lines.push(line);
  Object.assign(first, values);
  return undefined;
}

/** Convert a file of mosquitto, with the files that it includes and its ACL file. */
export async function importMosquitto(path: string, shell: Shell): Promise<Draft> {
  const draft = new Draft();
  const lines = await linesIn(path, shell, draft);
  const reading: Reading = {
    draft,
    shell,
    listeners: [{ head: undefined, port: 1883, host: undefined, lines: [], given: new Map() }],
    bridges: [],
    security: new Map(),
    isPerListener: lines.some(({ name, value }) => name === 'per_listener_settings' && isOn(value)),
    isPersistent: false,
    noDelay: undefined
  };
  let known = 0;
  for (const line of lines) {
    const row = rowOf(line.name, reading);
    if (row !== undefined) known++;
    if (row === undefined) draft.refuse(line, 'is not a setting of mosquitto.conf that is known here');
    else draft.judged(line, typeof row === 'string' ? row : row(line, reading));
  }
  if (known === 0 && lines.length > 0) {
    const message = `${path} has no setting of mosquitto.conf; name the broker of the file with --from`;
    throw new InvalidInput('CONFIG_INVALID', 'FILE', 'a file of mosquitto', path, message);
  }
  await finish(reading, path);
  return draft;
}

/** The lines of a file, with those of `include_dir` in their place. */
async function linesIn(path: string, shell: Shell, draft: Draft, isMain = true): Promise<SourceLine[]> {
  const lines: SourceLine[] = [];
  for (const line of splitLines(path, (await readFileFor(shell, path)).toString())) {
    if (line.name !== 'include_dir') {
      lines.push(line);
      continue;
    }
    const folder = located(line.value, path);
    const names = await readdir(folder).catch((error: Error) => error);
    if (!isMain) draft.refuse(line, 'is read in the main file only');
    else if (names instanceof Error) draft.refuse(line, names.message);
    else {
      const unread: string[] = [];
      for (const name of names.filter((one) => one.endsWith('.conf')).sort()) {
        const included = await linesIn(join(folder, name), shell, draft, false).catch((error: Error) => error);
        if (included instanceof Error) unread.push(included.message);
        else lines.push(...included);
      }
      if (unread.length > 0) draft.refuse(line, unread.join('; '));
    }
  }
  return lines;
}

function splitLines(file: string, text: string): SourceLine[] {
  return text.split(/\r?\n/).flatMap((raw, at) => {
    const whole = raw.trim();
    if (whole === '' || whole.startsWith('#')) return [];
    const [, name, value] = /^(\S+)\s*(.*)$/.exec(whole) as unknown as [string, string, string];
    return [{ file, line: at + 1, text: whole, name, value }];
  });
}

/** Write what depends on several lines: listeners, bridges, who may connect, and access rules. */
async function finish(reading: Reading, path: string): Promise<void> {
  const { draft, listeners, bridges, noDelay, isPersistent } = reading;
  const [first, ...others] = listeners;
  const hasDefault = first.head !== undefined || others.length === 0;
  const isLocalOnly = first.head === undefined && others.length === 0;
  const wanted = hasDefault ? listeners : others;
  const lost = hasDefault ? [] : [...first.lines, ...(reading.security.get(first)?.values() ?? [])];
  for (const line of lost) draft.refuse(line, 'belongs to no listener: it stands before the first line "listener"');
  const served = reading.isPerListener ? sameAccess(reading, wanted) : wanted;
  const main = reading.isPerListener ? reading.security.get(served[0]) : reading.security.get(undefined);
  const anonymous = (listener: MosquittoListener) => {
    const given = reading.isPerListener ? reading.security.get(listener) : main;
    const line = given?.get('allow_anonymous');
    return line === undefined ? isLocalOnly : isOn(line.value);
  };
  draft.config.mqttPort = 'off';
  draft.config.wsPort = 'off';
  const users = main?.get('password_file');
  if (users !== undefined) draft.set(users, 'passwordFile', located(users.value, path));
  const admits = served.some(anonymous);
  draft.config.allowAnonymous = admits;
  if (admits && users !== undefined)
    draft.added.push(
      'clients with a user name that is not in the password file are admitted like those without one; mosquitto refuses them'
    );
  const context = { isLocalOnly, noDelay, pskFile: main?.get('psk_file')?.value };
  for (const listener of served) {
    const differs = anonymous(listener) !== admits;
    writeListener(listener, { ...context, zoneOf: () => (differs ? { allowAnonymous: !admits } : {}) }, draft);
  }
  const hasKeys = served.some(({ given }) => given.has('psk_hint'));
  const keys = main?.get('psk_file');
  if (keys !== undefined && !hasKeys) draft.refuse(keys, 'no listener has psk_hint');
  for (const bridge of bridges) writeBridge(bridge, isPersistent, draft);
  if (draft.config.sessionExpiryInterval === undefined)
    draft.add(
      'sessionExpiryInterval',
      'infinity',
      'mosquitto keeps sessions of MQTT 3 for ever; the default here is two hours'
    );
  await addRules(reading, main, admits, path);
}

/** With per_listener_settings, the listeners with the password and ACL files of the first one; the others are not taken over. */
function sameAccess({ security, draft }: Reading, listeners: readonly MosquittoListener[]): MosquittoListener[] {
  const fileOf = (listener: MosquittoListener, name: string) => security.get(listener)?.get(name)?.value;
  const [first] = listeners;
  const names = ['password_file', 'acl_file', 'psk_file'];
  const isSame = (listener: MosquittoListener) => names.every((name) => fileOf(listener, name) === fileOf(first, name));
  for (const listener of listeners.filter((one) => !isSame(one))) {
    const reason = `sources of users and rules are the same for all listeners, and those of this listener differ from those of port ${first.port}: run a second broker for it, or merge the files`;
    const lines = [listener.head, ...listener.lines, ...(security.get(listener)?.values() ?? [])];
    for (const line of lines) if (line !== undefined) draft.refuse(line, reason);
  }
  return listeners.filter(isSame);
}

async function addRules(
  { draft, shell }: Reading,
  main: ReadonlyMap<string, SourceLine> | undefined,
  admitsAnonymous: boolean,
  path: string
): Promise<void> {
  const line = main?.get('acl_file');
  if (line === undefined) return;
  const file = located(line.value, path);
  let text: string;
  try {
    text = (await readFileFor(shell, file)).toString();
  } catch (error) {
    draft.refuse(line, (error as Error).message);
    draft.add('aclNomatch', 'deny', 'the access rules cannot be read, so nothing is allowed');
    return;
  }
  const rules = rulesOfMosquitto(
    splitLines(file, text),
    { admitsAnonymous, names: admitsAnonymous ? await namesOf(main?.get('password_file'), path, shell) : undefined },
    draft
  );
  draft.files.set('.acl.json', `[\n${rules.map((rule) => `  ${JSON.stringify(rule)}`).join(',\n')}\n]\n`);
  draft.set(line, 'aclFile', '');
  draft.add('aclNomatch', 'deny', 'with an ACL file, mosquitto denies what no line allows');
  draft.added.push(
    'a subscription needs a rule that covers its whole filter: mosquitto accepts every subscription, and delivers what may be read'
  );
}

/** The names in a password file; undefined if there is none. */
async function namesOf(line: SourceLine | undefined, path: string, shell: Shell): Promise<string[] | undefined> {
  if (line === undefined) return undefined;
  const text = await readFileFor(shell, located(line.value, path)).catch(() => Buffer.alloc(0));
  return text
    .toString()
    .split(/\r?\n/)
    .flatMap((one) => (one.startsWith('#') || !one.includes(':') ? [] : [one.slice(0, one.indexOf(':'))]));
}
