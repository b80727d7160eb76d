import { type BrokerOptions, InvalidInput, readBrokerOptions } from '../../lib/index.ts';
import type { Shell } from './command.ts';
import { type FlagValues, gatherFlags, readAs, refuseWords, spelledAsFlag } from './flags.ts';
import { environmentLayer, fileLayer, flagLayer, type Layer } from './layers.ts';
import { CONFIG_FLAG, LIBRARY_OPTIONS, SERVE_OPTIONS } from './serve-options.ts';

/** A listener to open. */
export interface PlannedListener {
  readonly kind: 'tcp' | 'tls' | 'ws' | 'wss' | 'unix';
  /** Its name in the `ready` line; undefined: it has its own name there. */
  readonly label?: string;
  /** Options of the listener as `embermq/net` takes them. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What `embermq serve` is to do. */
export interface ServeSettings {
  readonly own: FlagValues<typeof SERVE_OPTIONS>;
  readonly broker: BrokerOptions;
  readonly listeners: readonly PlannedListener[];
}

const LISTENERS = { listeners: { kind: 'object', default: undefined, about: 'more listeners' } } as const;
const ALL = { ...SERVE_OPTIONS, ...LIBRARY_OPTIONS };
const IN_FILE = { ...ALL, ...LISTENERS };
const WITH_CONFIG = { ...ALL, ...CONFIG_FLAG };

/**
 * Gather the options of `embermq serve`: flags over environment over config file over defaults.
 * @throws InvalidInput or BrokerError, whose message names the place where the mistake was made
 */
export async function readServeSettings(args: readonly string[], shell: Shell): Promise<ServeSettings> {
  const { given: flags, words } = gatherFlags(WITH_CONFIG, args);
  refuseWords(words, 'serve');
  const fromFlags = flagLayer(WITH_CONFIG, flags);
  const fromEnvironment = environmentLayer(shell.env, WITH_CONFIG);
  const config = { ...fromEnvironment.given, ...fromFlags.given }.config as string | undefined;
  const fromFile = config === undefined ? undefined : await fileLayer(shell, config, IN_FILE);
  const layers = [fromFile, fromEnvironment, fromFlags].filter((layer) => layer !== undefined);
  const merged: Record<string, unknown> = {};
  for (const layer of layers) {
    checkLayer(layer);
    Object.assign(merged, layer.given);
    if (KEEPING.some((name) => name in layer.given)) merged.memory = false;
  }
  const own = readAs(SERVE_OPTIONS, pick(merged, SERVE_OPTIONS), spelledAsFlag) as ServeSettings['own'];
  const broker = pick(merged, LIBRARY_OPTIONS) as BrokerOptions;
  const listeners = [...portListeners(own), ...furtherListeners(merged.listeners, config)];
  if (listeners.length === 0) {
    const message = 'nothing to listen on: every port is off, and no config file names listeners';
    throw new InvalidInput('OPTION_MISSING', 'mqttPort', 'a port', 'off', message);
  }
  for (const listener of listeners) checkExposure(listener, broker);
  return { own, broker, listeners };
}

/** What `memory` leaves nothing to do for: whoever gives one wants state to be kept. */
const KEEPING = ['dataDir', 'durability', 'verifyStore'] as const;

/** Each layer is read by itself, so that an error can name it. */
function checkLayer({ given, spelled }: Layer): void {
  const { memory } = readAs(SERVE_OPTIONS, pick(given, SERVE_OPTIONS), spelled);
  const keeping = memory ? KEEPING.find((name) => name in given) : undefined;
  if (keeping !== undefined) {
    const message = `${spelled('memory')} keeps nothing, so ${spelled(keeping)} means nothing: leave one of them out`;
    throw new InvalidInput('OPTION_INVALID', 'memory', `no ${spelled(keeping)}`, true, message);
  }
  for (const [name, value] of Object.entries(pick(given, LIBRARY_OPTIONS))) {
    try {
      readBrokerOptions({ [name]: value });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      throw new InvalidInput(
        error.code,
        name,
        error.expected,
        error.got,
        `${spelled(name)}: ${withoutName(error.message, name)}`
      );
    }
  }
}

function withoutName(message: string, name: string): string {
  return message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message;
}

function pick(given: Readonly<Record<string, unknown>>, table: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(table, name)));
}

function portListeners(own: ServeSettings['own']): PlannedListener[] {
  const { host, cert, key, ca } = own;
  const hasTls = own.mqttsPort !== 'off' || own.wssPort !== 'off';
  if (hasTls && (cert === undefined || key === undefined)) {
    throw new InvalidInput(
      'OPTION_MISSING',
      'cert',
      '--cert and --key',
      cert,
      'a TLS listener needs --cert FILE and --key FILE'
    );
  }
  if (!hasTls && (cert ?? key ?? ca) !== undefined) {
    throw new InvalidInput(
      'OPTION_MISSING',
      'mqttsPort',
      'a TLS port',
      'off',
      '--cert, --key and --ca are for --mqtts-port or --wss-port'
    );
  }
  // A renewed certificate is put in the place of the old one: it is taken without a restart.
  const tls = { certFile: cert, keyFile: key, watchInterval: '1m', ...(ca === undefined ? {} : { caFile: ca }) };
  const plans = [
    { kind: 'tcp', label: 'mqtt', port: own.mqttPort, more: {} },
    { kind: 'tls', label: 'mqtts', port: own.mqttsPort, more: tls },
    { kind: 'ws', label: 'ws', port: own.wsPort, more: {} },
    { kind: 'wss', label: 'wss', port: own.wssPort, more: tls }
  ] as const;
  return plans
    .filter(({ port }) => port !== 'off')
    .map(({ kind, label, port, more }) => ({ kind, label, options: { port, host, ...more } }));
}

const KINDS = ['tcp', 'tls', 'ws', 'wss', 'unix'];

/** `listeners` of the config file: options of `embermq/net`, and `kind`. */
function furtherListeners(list: unknown, config: string | undefined): PlannedListener[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new InvalidInput('OPTION_INVALID', `${config}: listeners`, 'a list', list);
  return list.map((entry: unknown, at) => {
    const { kind, ...options } = (entry ?? {}) as Record<string, unknown>;
    if (!KINDS.includes(kind as string)) {
      throw new InvalidInput('OPTION_INVALID', `${config}: listeners[${at}].kind`, `one of ${KINDS.join(', ')}`, kind);
    }
    return { kind: kind as PlannedListener['kind'], options };
  });
}

/**
 * A broker that other machines can reach lets nobody in by accident: who opens it to all says so.
 * @throws InvalidInput ANONYMOUS_EXPOSED
 */
function checkExposure({ kind, options }: PlannedListener, broker: BrokerOptions): void {
  const { host = '127.0.0.1', zone = 'external' } = options as { host?: string; zone?: string };
  if (kind === 'unix' || isLoopback(host) || asksForIdentity(options)) return;
  const settings = (broker.zones?.[zone] ?? {}) as Record<string, unknown>;
  if ((settings.allowAnonymous ?? settings.allow_anonymous ?? broker.allowAnonymous) !== undefined) return;
  throw new InvalidInput(
    'ANONYMOUS_EXPOSED',
    'host',
    'loopback, or allowAnonymous written out',
    host,
    `${host} can be reached from other machines, and anybody could connect: ask for client certificates (--ca), ` +
      'or write allowAnonymous: true (--allow-anonymous) if that is wanted'
  );
}

/** Client certificates that must verify, or nothing but pre-shared keys. */
function asksForIdentity(options: PlannedListener['options']): boolean {
  const { ca, caFile, rejectUnauthorized, psk, pskFile, cert, certFile } = options;
  const asksForCertificate = (ca ?? caFile) !== undefined && rejectUnauthorized !== false;
  return asksForCertificate || ((psk ?? pskFile) !== undefined && (cert ?? certFile) === undefined);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
