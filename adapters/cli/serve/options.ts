// A row is a flag, a key of the config file and an environment variable at once, and is listed in the help. Options
// of the library are taken from its tables; only those of the command are defined here. Values are checked when they
// are read, so that an error names the flag, not the place where the value is used.

import { BROKER_OPTIONS, ZONE_OPTIONS } from '../../../lib/adapter.ts';
import { InvalidInput, LOG_LEVELS, type LogLevel } from '../../../lib/index.ts';
import { ws } from '../../net/index.ts';
import type { Credentials } from '../../rest/index.ts';
import { describeFlags, type FlagTable, flag, listIn, timeFlag } from '../flags.ts';
import { checkApp, checkWho } from './credentials.ts';

/** A port option: a number (0 selects a free port) or `off`. */
export type Port = number | 'off';

const FILE = { value: 'FILE', check: notEmpty('a file') };

/** The options of the command. Each is a flag, a key of the config file and an environment variable. */
export const SERVE_OPTIONS = {
  host: flag('string', '127.0.0.1', 'address to bind to', { value: 'ADDRESS', check: notEmpty('an address') }),
  mqttPort: port(1883, 'MQTT over TCP', { alsoAs: 'port', aliases: ['port'] }),
  mqttsPort: port('off', 'MQTT over TLS; with --cert and --key 8883, unless --wss-port is given'),
  wsPort: port(8083, 'MQTT over WebSocket, path /mqtt'),
  wssPort: port('off', 'MQTT over secure WebSocket; needs --cert and --key'),
  httpHost: flag('string', '127.0.0.1', 'address that the HTTP ports are bound to, whatever --host is', {
    value: 'ADDRESS',
    check: notEmpty('an address')
  }),
  httpPort: port(8081, 'management interface (/api/v3, /api/v4, /api), /metrics, /livez and /readyz over HTTP'),
  httpEarlierPort: port(8080, 'earlier revision of the management interface (/api/v3) over HTTP'),
  dashboardPort: port(18_083, 'the management console, a web page for people who operate the broker'),
  dashboardHttpsPort: port('off', 'the management console over TLS; needs --cert and --key'),
  rulesPort: port(9081, 'REST interface of stream rules, streams, tables and plugins'),
  rulesCredentials: flag(
    'object',
    undefined as Credentials | undefined,
    'who may use --rules-port: applications (the default), users, both separated by a comma, remote (this machine without credentials, also for exports, which have all secrets in clear text), or none; only applications and administrators install plugins and functions',
    { value: 'WHO', check: checkWho, suggested: ['applications', 'users', 'remote', 'none'] }
  ),
  exitOnPluginDrop: flag(
    'boolean',
    false,
    'exit with code 100, after a graceful stop, when a plugin of stream rules is dropped with restart=1; otherwise only the stream service stops'
  ),
  pluginHosts: flag(
    'object',
    undefined as readonly string[] | undefined,
    'servers that offer plugins of stream rules, separated by commas; GET /plugins/TYPE/prebuild lists what they offer',
    { value: 'URLS', check: checkHosts }
  ),
  installScripts: flag(
    'boolean',
    true,
    'run install.sh of plugin archives, with the rights of the process; if off, archives that contain one are refused, but JavaScript in an archive still runs'
  ),
  autoLoadPlugins: flag(
    'boolean',
    false,
    'load libraries that were put into DATA_DIR/streams/plugins by hand; otherwise one that is found is reported and not loaded'
  ),
  httpPushPort: port(
    10_081,
    'receives rows for streams of the type httppush over HTTP, and has the paths of websocket, on loopback, without credentials unless the stream or sink has a token; open while a rule uses one'
  ),
  httpsPort: port('off', 'the same as --http-port over TLS; needs --cert and --key'),
  app: flag(
    'string',
    undefined as string | undefined,
    'application that may use the management interface and stream rules; it is added, or its secret is replaced. Other users of the machine see flags: use EMBERMQ_APP or the config file. Default: one is made at the first start, see DATA_DIR/first-application',
    { value: 'ID:SECRET', check: checkApp }
  ),
  wsOrigins: flag(
    'object',
    undefined as readonly string[] | undefined,
    'origins of web pages that may connect in addition to loopback origins, separated by commas; any: every page',
    { value: 'LIST', check: checkOrigins }
  ),
  trustedProxies: flag(
    'object',
    undefined as readonly string[] | undefined,
    'HTTP proxies in front of --ws-port, --wss-port and the HTTP ports: IP addresses and networks, separated by commas. The address of a client is then the one in their --proxy-header',
    { value: 'LIST', check: checkProxies }
  ),
  proxyHeader: flag(
    'choice',
    undefined as 'x-forwarded-for' | 'forwarded' | undefined,
    'the header in which --trusted-proxies report the address of a client. Default: x-forwarded-for',
    { choices: ['x-forwarded-for', 'forwarded'], value: 'x-forwarded-for|forwarded' }
  ),
  cert: flag('string', undefined as string | undefined, 'certificate chain of the TLS listeners (PEM)', FILE),
  key: flag('string', undefined as string | undefined, 'private key of the certificate (PEM)', FILE),
  ca: flag(
    'string',
    undefined as string | undefined,
    'accept only clients with a certificate of these authorities (PEM)',
    FILE
  ),
  passwordFile: flag(
    'string',
    undefined as string | undefined,
    'accept only clients with a user name and password of this file (see embermq help passwd)',
    FILE
  ),
  aclFile: flag(
    'string',
    undefined as string | undefined,
    'access rules: what clients may publish and subscribe to',
    FILE
  ),
  webhookUrl: flag('string', undefined as string | undefined, 'send all events to this URL with POST, as JSON', {
    value: 'URL',
    check: notEmpty('a URL')
  }),
  drainTimeout: timeFlag(10_000, 'time that a graceful stop waits for clients to receive their messages'),
  dataDir: flag('string', './data', 'folder for the persistent state; created if it does not exist', {
    value: 'DIR',
    check: notEmpty('a folder')
  }),
  durability: flag(
    'choice',
    'process' as 'process' | 'power',
    'whether the state survives only the end of the process, or also loss of power',
    {
      choices: ['process', 'power'],
      value: 'process|power'
    }
  ),
  verifyStore: flag(
    'boolean',
    true,
    'at start, verify the checksums of all files of the data folder (about 300 MB/s); if off, damage may remain unnoticed'
  ),
  reserve: flag(
    'size',
    undefined as number | undefined,
    'disk space that the data folder reserves for a full disk; default 64 MB, or a fifth of the file system if less; 0: none',
    { value: 'SIZE' }
  ),
  memory: flag(
    'boolean',
    false,
    'keep all state in memory only; not with --data-dir, --durability, --verify-store or --reserve'
  ),
  logLevel: flag(
    'choice',
    undefined as LogLevel | undefined,
    'what is logged to standard error: errors, also warnings (the default), also connections of clients, or also sessions and subscriptions',
    { choices: LOG_LEVELS, value: LOG_LEVELS.join('|') }
  ),
  verbose: flag(
    'boolean',
    false,
    'the same as --log-level info, which has a line for every client that connects or disconnects',
    {
      short: 'v'
    }
  ),
  traceClient: flag(
    'string',
    undefined as string | undefined,
    'trace this client: write its packets as lines of JSON',
    {
      value: 'ID',
      check: notEmpty('a client id')
    }
  ),
  traceTopic: flag('string', undefined as string | undefined, 'trace the messages whose topic matches this filter', {
    value: 'FILTER',
    check: notEmpty('a topic filter')
  }),
  traceAddress: flag(
    'string',
    undefined as string | undefined,
    'trace the clients with this IP address, or of this network',
    {
      value: 'ADDRESS',
      check: notEmpty('an IP address')
    }
  ),
  traceFile: flag(
    'string',
    undefined as string | undefined,
    'where the trace is written, 10 MB at most; then to FILE.1 and a new file. Default: standard error',
    FILE
  )
};

/** The path of the config file, which can be set only on the command line and in the environment. */
export const CONFIG_FLAG = {
  config: flag('string', undefined as string | undefined, 'read options from a JSON or YAML file', {
    ...FILE,
    short: 'c'
  })
};

/** Options of the library that are lists or objects. Flags and environment variables give them as JSON. */
const STRUCTURED = {
  zones: flag('object', undefined as unknown, 'settings of single zones', { value: 'JSON' }),
  rewrite: flag('object', undefined as unknown, 'rewrite rules for topics', { value: 'JSON' }),
  autoSubscriptions: flag('object', undefined as unknown, 'subscriptions made for every client', { value: 'JSON' }),
  schemas: flag('object', undefined as unknown, 'JSON Schemas of payloads by topic filter', { value: 'JSON' }),
  sparkplug: flag('object', undefined as unknown, 'make the broker Sparkplug Aware; {} is enough', { value: 'JSON' })
};

/** All options of the library that are not functions. */
export const LIBRARY_OPTIONS: FlagTable = { ...ZONE_OPTIONS, ...BROKER_OPTIONS, ...STRUCTURED };

function port(
  value: Port,
  about: string,
  more: { readonly alsoAs?: string; readonly aliases?: readonly string[] } = {}
) {
  return flag('object', value, `${about}; 0: any free port, off: none`, {
    check: checkPort,
    value: 'PORT',
    suggested: ['off'],
    ...more
  });
}

/** Check the origins like a listener, so that the error names the flag. */
function checkOrigins(value: unknown): unknown {
  const origins = listIn(value);
  ws({ port: 0, origins: origins as string[] });
  return origins;
}

/** Check the proxies like a listener, so that the error names the flag. */
function checkProxies(value: unknown): unknown {
  const proxies = listIn(value);
  ws({ port: 0, trustedProxies: proxies as string[] });
  return proxies;
}

/** Check the servers that offer plugins, so that the error names the flag. */
function checkHosts(value: unknown, field: string): unknown {
  const hosts = listIn(value);
  const isHost = (host: unknown) => typeof host === 'string' && /^https?:/.test(host) && URL.canParse(host);
  if (!Array.isArray(hosts) || !hosts.every(isHost))
    throw new InvalidInput('OPTION_INVALID', field, 'URLs that begin with http:// or https://', value);
  return hosts;
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

/** The output of `embermq help options`. */
export function optionsHelp(): string {
  return `options of the library, as flags of serve

${describeFlags(LIBRARY_OPTIONS)}`;
}
