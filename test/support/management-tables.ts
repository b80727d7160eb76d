import { MOVED_SETTINGS } from '../../adapters/cli/serve/moved-settings.ts';
import { CODES, type ManagementFaultKind } from '../../adapters/management/codes.ts';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { MANAGEMENT_OPTIONS } from '../../adapters/management/options.ts';
import { REVISIONS } from '../../adapters/management/revisions.ts';
import { createBroker } from '../../lib/index.ts';
import { code, markdown } from './table-parts.ts';

/** The tables of the pages about the management interface. */
export const MANAGEMENT_TABLES: Readonly<Record<string, () => string>> = {
  'management options': managementOptions,
  'management operations': operations,
  'management extensions': extensions,
  'management codes': codes,
  'original settings': originalSettings,
  'moved settings': movedSettings
};

/** Descriptions of defaults that a value does not show. */
const DEFAULTS: Readonly<Record<string, string>> = {
  prefix: 'that of the revision',
  trustedProxies: 'none',
  hosts: 'none',
  origins: 'none',
  audit: 'none',
  optionSource: 'none',
  maxBodyBytes: '1 MB',
  bodyTimeout: '15 s'
};

function managementOptions(): string {
  const rows = Object.entries(MANAGEMENT_OPTIONS).map(([name, row]) => [
    code(name),
    DEFAULTS[name] ?? code(String(row.default)),
    row.about
  ]);
  return markdown(['option', 'default', 'purpose'], rows);
}

function isExtension(path: string): boolean {
  return path.startsWith('/x/');
}

/** The documented operations: a row for each path, with the methods that each revision has. */
function operations(): string {
  const paths = new Map<string, Map<string, string[]>>();
  for (const { path, method, in: revisions = REVISIONS } of OPERATIONS) {
    if (isExtension(path)) continue;
    const methods = paths.get(path) ?? new Map<string, string[]>();
    paths.set(path, methods);
    for (const revision of revisions) methods.set(revision, [...(methods.get(revision) ?? []), method]);
  }
  const rows = [...paths].map(([path, methods]) => [
    code(path),
    ...REVISIONS.map((revision) => (methods.get(revision) ?? []).join(', '))
  ]);
  return markdown(['path', ...REVISIONS.map(code)], rows);
}

/** The operations that the original products do not have. */
function extensions(): string {
  const rows = OPERATIONS.filter(({ path }) => isExtension(path)).map(({ method, path, descr }) => [
    code(`${method} ${path}`),
    descr
  ]);
  return markdown(['operation', 'what it does'], rows);
}

/** The meaning of each fault for a caller; undefined: no caller sees it. */
const MEANINGS: Readonly<Record<ManagementFaultKind, string | undefined>> = {
  unknownPath: 'The interface has no such operation.',
  notJson: 'The body is not JSON.',
  missingParameter: 'A parameter is missing.',
  wrongParameter: 'A parameter has a wrong value.',
  wrongTopic: 'No valid topic was given.',
  emptyCredentials: 'A name or password is empty.',
  exists: 'There is a record of this name.',
  wrongOldPassword: 'The old password is wrong.',
  administrator: 'The user `admin` and the last administrator cannot be deleted, nor can the latter become a viewer.',
  running: 'It is already loaded, it cannot be stopped, or a backup is running.',
  notRunning: 'It is not loaded, or not available.',
  sessionRunning: 'The client of the session is connected.',
  unauthorized: 'The credentials are missing or wrong.',
  notPermitted: 'These credentials, or this page, may not do that.',
  tooManyLogins: 'Too many failed logins from this address.',
  refused: 'The broker refuses it; the message says why.',
  tooMany: 'A limit of the broker is reached.',
  unknownUser: 'There is no such user.',
  unknownRecord: 'There is no such record.',
  unknownClient: 'There is no such client.',
  unknownSession: 'There is no such session.',
  unknownNode: 'There is no such node.',
  badArguments: 'Rules: an argument is wrong.',
  notFound: 'Rules: there is no such rule, action, type or resource, or the statement does not match.',
  testFailed: 'Rules: the target of a resource cannot be reached.',
  bodyTooLarge: 'The body is too large.',
  bodyTooSlow: 'The body has not arrived in time.',
  bodyIncomplete: undefined,
  unavailable: 'The broker is starting or stopping, or its store has failed. Try again later.',
  failed: 'An internal error, which the broker has reported as an `error` event.'
};

function codes(): string {
  const rows = Object.entries(CODES).flatMap(([kind, { status, code: number, original }]) => {
    const meaning = MEANINGS[kind as ManagementFaultKind];
    if (meaning === undefined) return [];
    const there = 'text' in original ? `${original.status}, text` : `200, ${original.code ?? 'no code'}`;
    return [{ number, cells: [meaning, String(status), String(number), there] }];
  });
  rows.sort((a, b) => a.number - b.number);
  return markdown(
    ['fault', 'status', '`code`', "with `errors: 'original'`"],
    rows.map(({ cells }) => cells)
  );
}

/** The settings of EMQX 4.1 that the config file accepts under their own name, with the value that EMQX is shipped with. */
export const ORIGINAL_SETTINGS: Readonly<Record<string, string | undefined>> = {
  'node.name': 'emqx@127.0.0.1',
  allow_anonymous: 'true',
  acl_nomatch: 'allow',
  acl_deny_action: 'ignore',
  acl_cache_max_size: '32',
  acl_cache_ttl: '1m',
  flapping_detect_policy: '30, 1m, 5m',
  'broker.sys_interval': '1m',
  'broker.sys_heartbeat': '30s',
  'broker.shared_subscription_strategy': 'random',
  'broker.shared_dispatch_ack_enabled': 'false',
  'mqtt.max_packet_size': '1MB',
  'mqtt.max_clientid_len': '65535',
  'mqtt.max_topic_levels': '0',
  'mqtt.max_qos_allowed': '2',
  'mqtt.max_topic_alias': '65535',
  'mqtt.retain_available': 'true',
  'mqtt.wildcard_subscription': 'true',
  'mqtt.shared_subscription': 'true',
  'mqtt.ignore_loop_deliver': 'false',
  'zone.external.idle_timeout': '15s',
  'zone.external.enable_ban': 'on',
  'zone.external.enable_flapping_detect': 'off',
  'zone.external.publish_limit': undefined,
  'zone.external.server_keepalive': '0',
  'zone.external.keepalive_backoff': '0.75',
  'zone.external.max_subscriptions': '0',
  'zone.external.upgrade_qos': 'off',
  'zone.external.max_inflight': '32',
  'zone.external.retry_interval': '30s',
  'zone.external.max_awaiting_rel': '100',
  'zone.external.await_rel_timeout': '300s',
  'zone.external.session_expiry_interval': '2h',
  'zone.external.max_mqueue_len': '1000',
  'zone.external.mqueue_priorities': undefined,
  'zone.external.mqueue_default_priority': 'highest',
  'zone.external.mqueue_store_qos0': 'true',
  'zone.external.mountpoint': undefined,
  'zone.external.use_username_as_clientid': 'false',
  'zone.external.bypass_auth_plugins': 'false',
  'retainer.max_retained_messages': '0',
  'retainer.max_payload_size': '1MB',
  'retainer.expiry_interval': '0',
  'module.presence.qos': '1',
  'os_mon.cpu_high_watermark': '80%',
  'os_mon.cpu_low_watermark': '60%',
  'os_mon.cpu_check_interval': '60s',
  'os_mon.sysmem_high_watermark': '70%',
  'os_mon.mem_check_interval': '60s',
  'vm_mon.process_high_watermark': '80%',
  'vm_mon.process_low_watermark': '60%'
};

/** Defaults here that depend on the sources of the app. */
const DEPENDENT: Readonly<Record<string, string>> = {
  allowAnonymous: '`true` without a source of authentication, else `false`',
  aclNomatch: '`allow` without access rules, else `deny`'
};

function originalSettings(): string {
  const given = Object.entries(ORIGINAL_SETTINGS).filter(([, value]) => value !== undefined);
  const broker = createBroker(Object.fromEntries(given)); // checks that the values are accepted as they are written there
  const rows = Object.entries(ORIGINAL_SETTINGS).map(([key, there]) => {
    const { name, default: value, unit } = broker.configuration.get(key);
    const number = unit === undefined || value === 0 ? String(value) : `${value} ${unit}`;
    const here = typeof value === 'number' ? number : value === undefined ? 'none' : code(String(value));
    return [code(key), code(name), there === undefined ? 'none' : code(there), DEPENDENT[name] ?? here];
  });
  return markdown(['setting', 'option here', 'default there', 'default here'], rows);
}

/** The settings of EMQX that the config file does not accept under their own name. */
function movedSettings(): string {
  const rows = MOVED_SETTINGS.map(({ names, place, why, page }) => {
    const here = place === undefined ? `none; it ${why}` : place;
    return [
      names.map((name) => code(name.replace(/\.$/, '...'))).join(', '),
      page ? `${here} ([page](${page}))` : here
    ];
  });
  return markdown(['setting', 'here'], rows);
}
