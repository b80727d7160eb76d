import { InvalidInput } from '../../../lib/index.ts';

/** Settings of EMQX that a config file does not accept under their own name. */
interface MovedSettings {
  /**
   * The names, without `zone.NAME.` and `mqtt.`; a name with a trailing full stop stands for all names that begin with
   * it.
   */
  readonly names: readonly string[];
  /** The place of the same setting here, for messages; undefined: none. */
  readonly place: string | undefined;
  /** The reason why there is none: the end of a sentence that begins with the name of the setting. */
  readonly why?: string;
  /** The page about it, as a link from the page about the migration. */
  readonly page?: string;
}

const NOT_HERE = 'belongs to a part that does not exist here';
const OF_RUNTIME = 'is about the Erlang runtime';

/** Ordered: the first row with a name applies. The page about the migration from EMQX has this table. */
export const MOVED_SETTINGS: readonly MovedSettings[] = [
  {
    names: ['listener.tcp.', 'listener.ssl.', 'listener.ws.', 'listener.wss.'],
    place:
      'mqttPort, mqttsPort, wsPort and wssPort, and an entry of the list listeners for more (zone, proxyProtocol, maxConnections; key, cert and ca)',
    page: '../net/README.md'
  },
  { names: ['psk.file.path'], place: 'pskFile of a TLS listener in the list listeners', page: '../net/README.md' },
  { names: ['psk.file.delimiter'], place: 'pskDelimiter of a TLS listener in the list listeners' },
  {
    names: ['auth.user.password_hash', 'auth.client.password_hash', 'auth.mnesia.'],
    place: undefined,
    why: 'has no effect: records have the hash SHA-256, and logins are user names'
  },
  {
    names: ['auth.user.', 'auth.client.'],
    place: 'the records of the broker: POST /auth_username and /auth_clientid, or --password-file',
    page: '../../lib/access/README.md'
  },
  { names: ['auth.'], place: 'the list auth', page: '../../lib/access/README.md' },
  { names: ['bridge.'], place: 'the list bridges', page: '../bridge/README.md' },
  { names: ['module.rewrite.'], place: 'rewrite', page: '../../lib/broker/README.md' },
  { names: ['module.subscription.'], place: 'autoSubscriptions', page: '../../lib/broker/README.md' },
  {
    names: ['module.presence', 'module.acl_internal', 'module.delayed'],
    place: 'PUT /nodes/NODE/plugins/PLUGIN/load and unload, or embermq ctl plugins'
  },
  {
    names: ['plugins.', 'modules.'],
    place: undefined,
    why: 'is about files of plugins: what is loaded over REST is stored with the state'
  },
  { names: ['management.listener.https'], place: 'httpsPort, cert and key', page: '../cli/README.md' },
  { names: ['management.listener.'], place: 'httpPort and httpHost', page: '../cli/README.md' },
  {
    names: ['management.max_row_limit', 'max_row_limit'],
    place: 'maxRowLimit of the object management',
    page: 'README.md'
  },
  { names: ['management.default_application.', 'management.application.'], place: '--app ID:SECRET or EMBERMQ_APP' },
  { names: ['node.data_dir'], place: 'dataDir' },
  { names: ['node.'], place: undefined, why: OF_RUNTIME },
  { names: ['log.level'], place: 'logLevel (error, warn, info or debug)' },
  { names: ['log.'], place: undefined, why: 'has no effect: the log goes to standard error' },
  {
    names: ['retainer.storage_type'],
    place: 'memory, or dataDir: retained messages are stored with the rest of the state'
  },
  {
    names: ['flapping_threshold', 'flapping_banned_expiry_interval', 'flapping_clean_interval'],
    place: 'flappingDetectPolicy, such as "30,1m,5m"'
  },
  { names: ['enable_acl'], place: undefined, why: 'has no effect: a broker without access rules allows everything' },
  { names: ['enable_acl_cache'], place: 'aclCacheMaxSize, where 0 switches the cache off' },
  { names: ['enable_stats'], place: undefined, why: 'has no effect: statistics are always on' },
  { names: ['strict_mode'], place: undefined, why: 'has no effect: packets are always checked strictly' },
  { names: ['force_gc_policy', 'force_shutdown_policy'], place: undefined, why: OF_RUNTIME },
  { names: ['sysmon.', 'vm_mon.', 'os_mon.'], place: undefined, why: OF_RUNTIME },
  { names: ['broker.'], place: undefined, why: 'is about a cluster' },
  { names: ['cluster.', 'rpc.'], place: undefined, why: 'is about a cluster; there is one process' },
  {
    names: ['dashboard.', 'sn.', 'coap.', 'lwm2m.', 'stomp.', 'exproto.', 'exhook.', 'lua.', 'recon.', 'telemetry.'],
    place: undefined,
    why: NOT_HERE
  },
  { names: ['prometheus.', 'statsd.'], place: 'GET /metrics', page: 'README.md' }
];

/**
 * The error for a setting of EMQX that has another place here, or none; undefined if it is not a setting of EMQX.
 * @param where the file
 */
export function movedSetting(key: string, where: string): InvalidInput | undefined {
  const name = key.replace(/^(zone\.[^.]+|mqtt)\./, '');
  const row = MOVED_SETTINGS.find(({ names }) =>
    names.some((one) => one === name || (one.endsWith('.') ? name.startsWith(one) : name.startsWith(`${one}.`)))
  );
  if (row === undefined) return undefined;
  const { place, why } = row;
  const message =
    place === undefined
      ? `${where}: "${key}" ${why}; remove it`
      : `${where}: "${key}" has another place here: ${place}`;
  return new InvalidInput('OPTION_UNKNOWN', key, place ?? 'no such setting', key, message);
}
