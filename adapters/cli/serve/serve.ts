// Standard output has one line, "ready" with the ports; everything else goes to standard error. Entry points are
// imported when the settings need them: the HTTP interfaces alone take 15 MB. The first signal stops gracefully, the
// second ends the process at once. SIGHUP reloads sources and certificates; a source that an operator has stopped
// stays as it is, and what cannot be reloaded keeps its previous content.

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../../../lib/adapter.ts';
import { type Broker, createBroker, type StreamsOptions } from '../../../lib/index.ts';
import { bridges, mqttBridge, rpcBridge } from '../../bridge/index.ts';
import { levelStore } from '../../level/index.ts';
import { listen, listenHttp } from '../../net/index.ts';
import { webHook, webhooks } from '../../webhook/index.ts';
import { type Command, log, type Shell } from '../command.ts';
import { describeFlags } from '../flags.ts';
import { spelledAsVariable } from '../layers.ts';
import { ensureApplication, logAccess, warnOfNobody } from './access.ts';
import { beginBridges } from './bridges.ts';
import { ensureUser } from './first-user.ts';
import type { ServedHttp } from './http.ts';
import {
  type Opened,
  type OpenListener,
  openOptional,
  places,
  reloadAtHangup,
  type Served,
  warnOfClearHttp
} from './listeners.ts';
import { serveLogger, startTrace } from './log.ts';
import { CONFIG_FLAG, LIBRARY_OPTIONS, SERVE_OPTIONS } from './options.ts';
import { reportOverrides, warnOfOverrides } from './overrides.ts';
import { readServeSettings, type ServeSettings } from './settings.ts';
import type { ConfiguredAuthSource } from './sources.ts';
import { type ServedPlugins, servePlugins, streamTypes } from './streams-parts.ts';
import { followStreams, logStreams } from './streams-port.ts';
import { protobufOf } from './streams-schemas.ts';
import { UpgradeProgress } from './upgrade.ts';
import { beginWebhooks } from './webhooks.ts';

/** On smaller file systems, a flood of messages can be faster than LevelDB's compactions. */
const SMALL_DISK_BYTES = 67_108_864;
/** Exit code after a plugin was deleted [stream rules 1.4]. */
const DROP_CODE = 100;
const SECOND_SIGNAL_CODE = { SIGINT: 130, SIGTERM: 143 } as const;

/** `embermq serve`: run a broker with listeners until a signal ends it. */
export const serve: Command = {
  summary: 'run a broker',
  completed: () => ({ flags: { ...CONFIG_FLAG, ...SERVE_OPTIONS, ...LIBRARY_OPTIONS } }),
  help: () => `usage: embermq serve [flags]

Runs an MQTT broker. When all listeners accept connections, it prints one line on standard output: "ready" and a JSON object with the
actual ports and the process id. All other output goes to standard error. On SIGTERM or SIGINT it stops gracefully and exits with code 0;
a second signal ends it immediately. SIGHUP reloads the sources of authentication, the access rules and the certificates of the TLS
listeners; if a new file has an error, the error is reported and the previous content remains in use. Sessions, queued and retained messages
are persisted in --data-dir and survive every kind of exit, including kill -9. With --memory, nothing is persisted.

${describeFlags({ ...CONFIG_FLAG, ...SERVE_OPTIONS })}

Each flag can also be set in the config file (mqttPort) and in the environment (${spelledAsVariable('mqttPort')}). So can every option of
the library (maxPacketSize, ${spelledAsVariable('maxPacketSize')}, --max-packet-size); "embermq help options" lists them. Flags override the
environment, and the environment overrides the file. This also applies to --memory against --data-dir, --durability, --verify-store or
--reserve. The file may also define "listeners": [{ "kind": "unix", "path": ... }], and
"auth": [{ "kind": "http", ... }], a list of sources of authentication and of access rules, "webhooks": [{ "url": ... }], a list of web
servers that receive events, "bridges": [{ "url": ... }], a list of MQTT servers that messages are exchanged with,
"streams": { ... }, streams, tables and rules over them, and "management": { ... }, "streamsApi": { ... } and "dashboard": { ... }, options of the two
interfaces and of the console.`,
  outlivesOutput: true,
  async run(args, shell) {
    const served: Served = { opened: [], files: [] };
    const { opened, files } = served;
    const ignoreHangups = reloadAtHangup(shell, served);
    const { first, release } = awaitSignals(shell);
    const endCollecting = shell.collectWhenIdle();
    let http: ServedHttp | undefined;
    let ofPlugins: ServedPlugins | undefined;
    let upgrade: UpgradeProgress | undefined;
    try {
      const settings = await readServeSettings(args, shell);
      const { broker, store, streams } = await prepare(settings, shell);
      logStreams(broker, shell);
      ofPlugins = await servePlugins(broker, streams, settings.own, shell);
      files.push(...settings.sources.map((source) => ({ label: source.label, reload: () => reload(broker, source) })));
      const interfaces = await servedHttp(broker, settings, ofPlugins);
      http = interfaces;
      const open: OpenListener = ({ transport, http: kind }) =>
        kind === undefined || interfaces === undefined
          ? listen(broker, transport)
          : listenHttp(broker, transport, interfaces.handlers[kind]);
      const needed = settings.listeners.filter(({ isOptional }) => !isOptional);
      for (const plan of needed) opened.push({ plan, listening: open(plan) });
      await beginWebhooks(broker, settings.webhooks);
      await beginBridges(broker, settings.bridges);
      const completeTrace = await startTrace(broker, settings.own, shell);
      upgrade = store && new UpgradeProgress(store, shell);
      await broker.start();
      upgrade?.finish();
      reportOverrides(broker, shell, settings.optionPlace);
      warnOfOverrides(broker, settings.listeners, shell);
      await openOptional(settings.listeners, broker, opened, { shell, open });
      warnOfClearHttp(opened, shell);
      await admit(broker, settings, opened, shell);
      followStreams(broker, opened, shell);
      http?.begin();
      shell.stdout.write(`ready ${JSON.stringify({ ...places(settings.listeners, opened), pid: shell.pid })}\n`);
      if (store !== undefined) {
        log(shell, `state is persisted in ${store.name}`);
        await warnOfSmallDisk(store.name, shell);
      }
      const dropped = ofPlugins.ended.then((text) => ({ text, code: DROP_CODE }));
      const end = await Promise.race([first.then((text) => ({ text, code: 0 })), dropped]);
      log(shell, `${end.text}: draining`);
      await broker.stop({ timeoutMs: settings.own.drainTimeout });
      await completeTrace();
      return end.code;
    } finally {
      upgrade?.end();
      http?.end();
      ofPlugins?.plugins?.close();
      release();
      ignoreHangups();
      endCollecting();
    }
  }
};

/** Ensure that an application and a user exist for the HTTP ports, and log the accepted credentials. */
async function admit(
  broker: Broker,
  { own, management, streamsApi }: ServeSettings,
  opened: readonly Opened[],
  shell: Shell
): Promise<void> {
  const credentials = {
    management: management.options.credentials ?? 'applications',
    rules: streamsApi.options.credentials ?? 'applications'
  };
  const folder = own.memory ? undefined : own.dataDir;
  await ensureApplication(broker, { app: own.app, opened, credentials, folder }, shell);
  await ensureUser(broker, opened, folder, shell);
  logAccess(opened, credentials, shell);
  warnOfNobody(broker, opened, credentials, shell);
}

/**
 * Load the HTTP interfaces and create the handlers of their ports. They take 15 MB of memory, so they are loaded only
 * if there is a port, or an option to check.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export async function servedHttp(
  broker: Broker,
  { listeners, management, streamsApi, dashboard, optionPlace }: ServeSettings,
  { plugins }: Pick<ServedPlugins, 'plugins'>
): Promise<ServedHttp | undefined> {
  const hasOptions = [management, streamsApi, dashboard].some(({ options }) => Object.keys(options).length > 0);
  if (!hasOptions && listeners.every(({ http }) => http === undefined)) return undefined;
  const { ServedHttp } = await import('./http.ts');
  const options = { ...management.options, optionSource: optionPlace };
  return new ServedHttp(broker, { options, place: management.place }, streamsApi, dashboard, plugins);
}

/** Warn if the file system of the data folder is smaller than the README recommends. */
async function warnOfSmallDisk(folder: string, shell: Shell): Promise<void> {
  const fileSystem = await statfs(folder).catch(() => undefined); // the store reports a missing folder
  if (fileSystem === undefined || fileSystem.blocks * fileSystem.bsize >= SMALL_DISK_BYTES) return;
  const text = 'if queues fill it, messages are refused and the store may fail; use 64 MB or more';
  log(shell, `warning: the file system of ${folder} is smaller than 64 MB; ${text}`);
}

/** Resolve on the first SIGINT or SIGTERM, and end the process on the second. */
function awaitSignals(shell: Shell): { first: Promise<string>; release: () => void } {
  let release = () => {};
  const first = new Promise<string>((resolve) => {
    let isStopping = false;
    release = shell.onSignal((signal) => {
      if (isStopping) shell.exit(SECOND_SIGNAL_CODE[signal]);
      isStopping = true;
      resolve(signal);
    });
  });
  return { first, release };
}

/**
 * Reload a source, unless an operator has stopped it.
 * @throws its error; the previous content then remains in use
 */
async function reload(broker: Broker, source: ConfiguredAuthSource): Promise<void> {
  if (broker.access.list().some(({ name, isStarted }) => name === source.name && !isStarted)) return;
  await broker.access.reload(source.name);
  if (source.failure !== undefined) throw source.failure;
}

/** The options of streams, with all types of sources and sinks, and the format protobuf. */
async function streamsOf(
  { own, broker, schemas, folders, streamsApi }: ServeSettings,
  shell: Shell
): Promise<StreamsOptions> {
  const folder = own.memory ? {} : { dataDir: join(own.dataDir, 'streams') };
  const places = { folders, reserved: own.memory ? [] : [own.dataDir] };
  const { origins, hosts = [] } = streamsApi.options;
  const pages = { hosts, ...(origins === undefined ? {} : { origins }) };
  const options = { ...folder, ...broker.streams, ...(await streamTypes(own.httpPushPort, places, pages)) };
  return { ...options, formats: [await protobufOf(schemas, options.dataDir, shell)] };
}

/** The broker of the settings, before its start. Nothing is opened. */
interface Prepared {
  readonly broker: Broker;
  readonly store: Store | undefined;
  readonly streams: StreamsOptions;
}

/**
 * Create the broker of the settings, without listeners.
 * @throws InvalidInput, BrokerError for options that do not fit together
 */
export async function prepare(settings: ServeSettings, shell: Shell): Promise<Prepared> {
  const { memory, dataDir, durability, verifyStore, reserve } = settings.own;
  const onWarning = (text: string) => log(shell, `warning: ${text}`);
  const store = memory ? undefined : levelStore(dataDir, { durability, verify: verifyStore, reserve, onWarning });
  const streams = await streamsOf(settings, shell);
  const { rules } = settings.broker;
  const broker = createBroker({
    ...settings.broker,
    streams,
    logger: serveLogger(shell, settings.own),
    auth: settings.sources,
    connectors: [webhooks(), bridges()],
    rules: { ...rules, resources: [webHook(), mqttBridge(), rpcBridge(), ...(rules?.resources ?? [])] },
    ...(store === undefined ? {} : { store })
  });
  return { broker, store, streams };
}
