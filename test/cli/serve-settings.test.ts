import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type PlannedListener, readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { ORIGINAL_SETTINGS } from '../support/management-tables.ts';
import { IS_LONG } from '../support/samples.ts';
import { testShell } from './shell.ts';

/** Read the settings of a command line, an environment and a config file. */
function read(args: string[], { env = {}, file }: { env?: Record<string, string>; file?: unknown } = {}) {
  const shell = testShell();
  Object.assign(shell.env, env);
  if (file !== undefined) shell.files.set('e.json', typeof file === 'string' ? file : JSON.stringify(file));
  return readServeSettings(file === undefined ? args : ['--config', 'e.json', ...args], shell);
}

/** The kind, name and address of each listener. */
function outlined(listeners: readonly PlannedListener[]): unknown[] {
  return listeners.map(({ label, transport: { kind, place } }) => {
    return 'path' in place ? [kind, label, place.path] : [kind, label, place.host, place.port];
  });
}

/** Settings that the documents of EMQX name, beside those that are accepted. */
const ORIGINAL_NAMES = `
  acl_file web.hook.api.url web.hook.encode_payload api.url encode_payload rule_engine.ignore_sys_message
  rule_engine.events.client_connected enable_acl_cache flapping_threshold max_row_limit mqtt.strict_mode
  zone.external.enable_acl zone.external.enable_stats zone.external.strict_mode zone.external.force_gc_policy
  zone.external.force_shutdown_policy zone.external.allow_anonymous zone.external.acl_deny_action
  zone.external.flapping_threshold zone.external.flapping_banned_expiry_interval zone.external.response_information
  flapping_clean_interval node.cookie node.data_dir node.process_limit cluster.name cluster.discovery rpc.mode log.to log.level
  listener.tcp.external listener.tcp.external.zone listener.ssl.external.keyfile listener.ws.external
  listener.wss.external listener.tcp.internal psk.file.path psk.file.delimiter auth.mnesia.as auth.user.1.username
  auth.client.1.clientid auth.user.password_hash auth.http.auth_req auth.jwt.secret auth.mysql.server
  bridge.mqtt.aws.address module.presence module.presence.qos module.rewrite.rule.1 module.subscription.1.topic
  module.subscription.1.qos modules.loaded_file plugins.loaded_file management.max_row_limit management.listener.http
  management.listener.https management.default_application.id management.default_application.secret
  management.application.default_secret dashboard.listener.http dashboard.default_user.login retainer.storage_type
  broker.session_locking_strategy sysmon.long_gc vm_mon.check_interval os_mon.procmem_high_watermark mqtt.sn.port
  coap.port lwm2m.bind.udp.1 stomp.listener prometheus.push.gateway.server telemetry.enabled
`
  .trim()
  .split(/\s+/);

describe('options of serve', () => {
  it('opens MQTT on 1883 and WebSocket on 8083 of loopback by default', async () => {
    const { listeners, broker } = await read([]);
    assert.deepEqual(outlined(listeners), [
      ['tcp', 'mqtt', '127.0.0.1', 1883],
      ['ws', 'ws', '127.0.0.1', 8083]
    ]);
    assert.deepEqual(broker, {});
  });

  it('accepts 0 for any free port and off for none', async () => {
    const { listeners } = await read(['--mqtt-port', '0', '--ws-port', 'off']);
    assert.deepEqual(outlined(listeners), [['tcp', 'mqtt', '127.0.0.1', 0]]);
    await assert.rejects(read(['--mqtt-port', '70000']), {
      message: /^--mqtt-port: expected a port from 0 to 65535, or off, got "70000"/
    });
  });

  it('takes --port, and "port" in the config file, for the port of MQTT over TCP', async () => {
    const portOf = async (...given: Parameters<typeof read>) => outlined((await read(...given)).listeners)[0];
    assert.deepEqual(await portOf(['--port', '1884']), ['tcp', 'mqtt', '127.0.0.1', 1884]);
    assert.deepEqual(await portOf(['--port=1884', '--mqtt-port=1884']), ['tcp', 'mqtt', '127.0.0.1', 1884]);
    assert.deepEqual(await portOf([], { file: { port: 1885 } }), ['tcp', 'mqtt', '127.0.0.1', 1885]);
    assert.deepEqual(await portOf(['--port', '1886'], { file: { port: 1885 } }), ['tcp', 'mqtt', '127.0.0.1', 1886]);
    await assert.rejects(read(['--port', '1884', '--mqtt-port', '1885']), {
      code: 'FLAG_INVALID',
      message: '--port 1884 and --mqtt-port 1885 set the same option to different values; remove one of them'
    });
    await assert.rejects(read([], { file: { port: 1, mqttPort: 2 } }), {
      code: 'CONFIG_INVALID',
      message: /"mqttPort" and "port" are the same option; remove one of them/
    });
    await assert.rejects(read(['--port', 'x']), { message: /^--mqtt-port: expected a port from 0 to 65535/ });
  });

  it('lets more web pages connect over WebSocket with wsOrigins, and names the flag if it is invalid [OPTION_INVALID]', async () => {
    const isLetIn = async (origin: string, args: string[], more: Parameters<typeof read>[1] = {}) => {
      const { listeners } = await read(args, more);
      const { webSocket } = listeners.find(({ label }) => label === 'ws')?.transport ?? {};
      return webSocket?.origins(origin, {} as IncomingMessage);
    };
    const [one, two] = ['https://a.example', 'https://b.example'];
    const list = ['--ws-origins', `${one}, ${two}`];
    for (const origin of [one, two]) assert.equal(await isLetIn(origin, list), true);
    assert.equal(await isLetIn('https://c.example', list), false);
    assert.equal(await isLetIn(one, []), false);
    assert.equal(await isLetIn(one, ['--ws-origins', 'any']), true);
    assert.equal(await isLetIn(two, [], { file: { wsOrigins: [one, two] } }), true);
    assert.equal(await isLetIn(two, [], { env: { EMBERMQ_WS_ORIGINS: two } }), true);
    await assert.rejects(read(['--ws-origins', 'a.example']), {
      code: 'OPTION_INVALID',
      message:
        /^--ws-origins: expected origins as browsers send them, such as "https:\/\/app\.example", or "any", got "a\.example"/
    });
  });

  it('trusts HTTP proxies of --trusted-proxies at WebSocket and HTTP ports, unless these have their own', async () => {
    const flags = ['--trusted-proxies', '10.0.0.0/8, 127.0.0.1', '--proxy-header', 'forwarded'];
    const outlined = ({ listeners, management, streamsApi, dashboard }: Awaited<ReturnType<typeof read>>) => [
      ...listeners
        .filter(({ http }) => http === undefined)
        .map(({ label, transport: { common, webSocket } }) => [
          label,
          common.trustedProxies.trusts('10.1.2.3'),
          webSocket?.proxyHeader
        ]),
      ...[management, streamsApi, dashboard].map(({ options }) => [options.trustedProxies, options.proxyHeader])
    ];
    const proxies = [['10.0.0.0/8', '127.0.0.1'], 'forwarded'];
    assert.deepEqual(outlined(await read(['--port', '0', ...flags])), [
      ['mqtt', false, undefined],
      ['ws', true, 'forwarded'],
      proxies,
      proxies,
      proxies
    ]);
    const none = [undefined, undefined];
    assert.deepEqual(outlined(await read(['--port', '0'])).slice(1), [
      ['ws', false, 'x-forwarded-for'],
      none,
      none,
      none
    ]);
    const file = { trustedProxies: '10.0.0.1', management: { trustedProxies: '10.0.0.2' } };
    const own = await read([], { file });
    assert.deepEqual(outlined(own).slice(2, 4), [
      ['10.0.0.2', undefined],
      [['10.0.0.1'], undefined]
    ]);
    await assert.rejects(read(['--trusted-proxies', 'proxy.example']), {
      code: 'OPTION_INVALID',
      message:
        /^--trusted-proxies: expected IP addresses, networks such as "10\.0\.0\.0\/8", or "unix", got "proxy\.example"/
    });
    await assert.rejects(read(['--proxy-header', 'x-real-ip']), { message: /^--proxy-header: / });
  });

  it('refuses to start without a listener', async () => {
    await assert.rejects(read(['--mqtt-port', 'off', '--ws-port', 'off']), {
      code: 'OPTION_MISSING',
      message: /^nothing to listen on: /
    });
  });

  it('lets flags override the environment, which overrides the config file, for every option of the library', async () => {
    const file = { max_packet_size: '1KB', maxInflight: 7, mqttPort: 1, node: 'a@file' };
    const env = { EMBERMQ_MAX_INFLIGHT: '8', EMBERMQ_MQTT_PORT: '2', EMBERMQ_NODE: 'a@env' };
    const { broker, listeners } = await read(['--mqtt-port', '3', '--node', 'a@flag'], { env, file });
    assert.deepEqual(broker, { maxPacketSize: '1KB', maxInflight: '8', node: 'a@flag' });
    assert.deepEqual(outlined(listeners)[0], ['tcp', 'mqtt', '127.0.0.1', 3]);
  });

  it('reads zones and lists from the file, from the documented dotted keys, and as JSON from the environment', async () => {
    const file = {
      zones: { a: { maxInflight: 1 } },
      'zone.external.max_inflight': 3,
      'broker.sys_interval': '5s',
      'mqtt.max_packet_size': '2MB'
    };
    const { broker } = await read([], { file, env: { EMBERMQ_AUTO_SUBSCRIPTIONS: '[{"topic":"c/%c"}]' } });
    assert.deepEqual(broker, {
      zones: { a: { maxInflight: 1 }, external: { max_inflight: 3 } },
      sysInterval: '5s',
      maxPacketSize: '2MB',
      autoSubscriptions: [{ topic: 'c/%c' }]
    });
  });

  it('reads schemas of payloads and the option sparkplug from the file and the environment', async () => {
    const schemas = { 'a/+': { type: 'object', required: ['t'] } };
    const { broker } = await read([], { file: { schemas }, env: { EMBERMQ_SPARKPLUG: '{"ndeathTimestamp":true}' } });
    assert.deepEqual(broker, { schemas, sparkplug: { ndeathTimestamp: true } });
  });

  it('refuses unknown options, and names the source and a suggestion', async () => {
    await assert.rejects(read([], { file: { maxInflihgt: 7 } }), {
      code: 'OPTION_UNKNOWN',
      message: 'unknown option "maxInflihgt" in e.json; did you mean "maxInflight"?'
    });
    await assert.rejects(read([], { env: { EMBERMQ_MAX_INFLIHGT: '7' } }), {
      code: 'OPTION_UNKNOWN',
      message: /in the environment; did you mean "EMBERMQ_MAX_INFLIGHT"/
    });
    await assert.rejects(read(['--max-inflihgt', '7']), {
      code: 'FLAG_UNKNOWN',
      message: /did you mean --max-inflight/
    });
    await assert.rejects(read([], { file: { zones: { a: { maxInflihgt: 7 } } } }), {
      code: 'OPTION_UNKNOWN',
      message: /zones\.a.*did you mean "maxInflight"/
    });
    await assert.rejects(read(['start']), { code: 'FLAG_INVALID', message: /serve accepts only flags, not "start"/ });
  });

  it('accepts every documented setting of EMQX, or names its new place', async () => {
    const names = [...ORIGINAL_NAMES, ...Object.keys(ORIGINAL_SETTINGS)];
    for (const name of names) {
      const value = ORIGINAL_SETTINGS[name] ?? 'x';
      await read([], { file: { [name]: value } }).catch(({ code, message }) => {
        if (code !== 'OPTION_UNKNOWN') return; // it is known, and has other values
        assert.match(message, /^e\.json: ".*" (has another place here: \S|.*; remove it$)/, name);
        assert.ok(message.includes(`"${name}"`), message);
      });
    }
    await assert.rejects(read([], { file: { 'listener.tcp.external': '1883' } }), {
      code: 'OPTION_UNKNOWN',
      message: /^e\.json: "listener\.tcp\.external" has another place here: mqttPort, /
    });
    await assert.rejects(read([], { file: { 'zone.internal.enable_stats': 'on' } }), {
      message: 'e.json: "zone.internal.enable_stats" has no effect: statistics are always on; remove it'
    });
  });

  it('accepts api.url and encode_payload as settings of a webhook', async () => {
    const url = 'http://127.0.0.1:1/';
    const rule = { 'web.hook.rule.client.connected.1': '{"action": "on_client_connected"}' };
    const { webhooks } = await read([], { file: { 'api.url': url, encode_payload: 'base62', ...rule } });
    assert.deepEqual(
      webhooks.map(({ options }) => options),
      [{ 'web.hook.api.url': url, 'web.hook.encode_payload': 'base62', ...rule }]
    );
    await assert.rejects(read([], { file: { 'api.url': url, 'web.hook.api.url': url } }), {
      code: 'CONFIG_INVALID',
      message: /"web\.hook\.api\.url" is set twice/
    });
  });

  it('names the source of an invalid value', async () => {
    await assert.rejects(read([], { file: { max_inflight: -1 } }), {
      code: 'OPTION_INVALID',
      message: /^e\.json: max_inflight: expected a whole number from 0 to 65535/
    });
    await assert.rejects(read([], { env: { EMBERMQ_MAX_INFLIGHT: 'x' } }), {
      message: /^EMBERMQ_MAX_INFLIGHT: expected/
    });
    await assert.rejects(read(['--max-inflight', 'x']), { message: /^--max-inflight: expected/ });
    await assert.rejects(read([], { file: { drainTimeout: 'soon' } }), {
      message: /^e\.json: drainTimeout: expected a duration/
    });
    await assert.rejects(read([], { env: { EMBERMQ_ZONES: '{bad' } }), { message: /^EMBERMQ_ZONES: .*JSON/ });
  });

  it('reports that options that are functions can only be set in code', async () => {
    for (const name of ['hooks', 'clock', 'store', 'memoryUsage'])
      await assert.rejects(read([], { file: { [name]: {} } }), {
        code: 'OPTION_UNKNOWN',
        message: `e.json: "${name}" can only be set in code`
      });
  });

  it('reports a config file that does not exist, is not JSON or is not an object', async () => {
    await assert.rejects(read(['--config', 'none.json']), { code: 'FILE_UNREADABLE', message: /none\.json.*ENOENT/ });
    await assert.rejects(read([], { file: '{' }), { code: 'CONFIG_INVALID', message: /^e\.json: / });
    await assert.rejects(read([], { file: '[]' }), { code: 'CONFIG_INVALID' });
  });

  it('CONFIG_INVALID: accepts a config file in UTF-8, with or without a byte order mark, and names any other encoding', async () => {
    const text = '{"node":"a@b"}';
    const readBytes = (bytes: Buffer, name = 'e.json') => {
      const shell = testShell();
      shell.files.set(name, bytes);
      return readServeSettings(['--config', name], shell);
    };
    const marked = await readBytes(Buffer.from(`\ufeff${text}`));
    assert.equal(marked.broker.node, 'a@b');
    assert.equal((await readBytes(Buffer.from('\ufeffnode: a@b\n'), 'e.yaml')).broker.node, 'a@b');
    const wide = Buffer.from(`\ufeff${text}`, 'utf16le');
    for (const bytes of [wide, wide.subarray(2), Buffer.from(wide).swap16(), Buffer.from(wide.subarray(2)).swap16()])
      await assert.rejects(readBytes(bytes), {
        code: 'CONFIG_INVALID',
        message: 'e.json: the text is in UTF-16; save it as UTF-8'
      });
    await assert.rejects(readBytes(Buffer.from('{"node":"\xe9"}', 'latin1')), {
      code: 'CONFIG_INVALID',
      message: 'e.json: the text is not UTF-8; save it as UTF-8'
    });
    await assert.rejects(readBytes(Buffer.alloc(0)), { code: 'CONFIG_INVALID', message: /^e\.json: / });
  });

  it('FILE_UNREADABLE: explains why it does not read a config file that is too long, a folder, a pipe or a device', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-config-'));
    const unreadable = async (path: string, fault: RegExp) =>
      assert.rejects(read(['--config', path]), ({ code, message }: Error & { code: string }) => {
        assert.equal(code, 'FILE_UNREADABLE');
        assert.ok(message.startsWith(`cannot read ${path}: `), message);
        assert.match(message, fault);
        return true;
      });
    try {
      const long = join(folder, 'long.json');
      writeFileSync(long, '');
      truncateSync(long, 600 * 1024 * 1024); // a sparse file, larger than the maximum length of a string (ERR_STRING_TOO_LONG)
      await unreadable(long, /it has 629145600 bytes; the maximum is 16777216/);
      await unreadable(folder, /it is a directory/);
      if (process.platform !== 'win32') {
        execFileSync('mkfifo', [join(folder, 'pipe')]);
        await unreadable(join(folder, 'pipe'), /it is a pipe, a socket or a device/);
        await unreadable('/dev/zero', /it is a pipe, a socket or a device/);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('CONFIG_INVALID: refuses an option that is set twice, in any spelling', async () => {
    const twice = {
      '{"host":"127.0.0.1","node":"a@b","host":"0.0.0.0"}': /"host" occurs twice in one object/,
      '{"zones":{"a":{"maxInflight":1},"a":{}}}': /"a" occurs twice/,
      '{"zones":{"a":{"maxInflight":1,"max\\u0049nflight":2}}}': /"maxInflight" occurs twice/,
      '{"maxInflight":1,"max_inflight":2}': /"max_inflight" and "maxInflight" are the same option/,
      '{"zones":{"inner":{"maxInflight":1,"max_inflight":2}}}':
        /"max_inflight" and "maxInflight" of zone "inner" are the same option/,
      '{"zone.inner.maxInflight":1,"zone.inner.max_inflight":2}':
        /"max_inflight" and "maxInflight" of zone "inner" are the same option/,
      '{"zone.a.maxInflight":1,"zones":{"a":{"maxInflight":2}}}': /"maxInflight" of zone "a" is set twice/
    };
    for (const [file, message] of Object.entries(twice))
      await assert.rejects(read([], { file }), { code: 'CONFIG_INVALID', message });
    const { broker } = await read([], {
      file: '{"zone.a.maxInflight":1,"zones":{"b":{"maxInflight":2},"a":{"upgradeQos":true}},"rewrite":[{"a":[]},{"a":"\\"{:"}]}'
    });
    assert.deepEqual(broker.zones, { a: { upgradeQos: true, maxInflight: 1 }, b: { maxInflight: 2 } });
  });

  it('reports huge strings and deep nesting with a short error message', async () => {
    const bytes = (IS_LONG ? 15 : 1) * 1024 * 1024;
    const long = 'n'.repeat(bytes);
    const duration = '1s'.repeat(bytes / 2);
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    const wrong: [file: string, code: string, message: RegExp][] = [
      [
        `{"node":"${long}"}`,
        'OPTION_INVALID',
        /^e\.json: node: expected a string of at most 1024 bytes, got "n+\.\.\."$/
      ],
      [`{"mountpoint":"${long}"}`, 'OPTION_INVALID', /^e\.json: mountpoint: expected a string of at most 65535 bytes/],
      [`{"drainTimeout":"${duration}"}`, 'DURATION_INVALID', /^e\.json: drainTimeout: expected a duration/],
      [`{"host":"${long}"}`, 'OPTION_INVALID', /expected a string of at most 65535 bytes/],
      [
        `{"maxPacketSize":"${long}"}`,
        'OPTION_INVALID',
        /^e\.json: maxPacketSize: expected a string of at most 65535 bytes/
      ],
      [
        `{"sysInterval":"${duration}"}`,
        'OPTION_INVALID',
        /^e\.json: sysInterval: expected a string of at most 65535 bytes/
      ],
      [`{"${long}":1}`, 'OPTION_UNKNOWN', /^unknown option "n+\.\.\." in e\.json$/],
      [`{"${long}":1,"${long}":1}`, 'CONFIG_INVALID', /^e\.json: "n{80}" occurs twice/],
      [`{"zones":${deep}}`, 'OPTION_INVALID', /zones: expected an object/],
      [`{"autoSubscriptions":${deep}}`, 'OPTION_INVALID', /autoSubscriptions/],
      [`{"listeners":${deep}}`, 'OPTION_INVALID', /listeners\[0\]: expected an object with "kind"/]
    ];
    for (const [file, code, message] of wrong) {
      await assert.rejects(read([], { file }), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, message);
        assert.ok(error.message.length < 500, `${error.message.length} characters`);
        return true;
      });
    }
  });

  it('refuses a listener in a zone that is not defined, with ZONE_UNKNOWN and its place in the file', async () => {
    await assert.rejects(read([], { file: { listeners: [{ kind: 'tcp', port: 0, zone: 'inner' }] } }), {
      code: 'ZONE_UNKNOWN',
      message: /listeners\[0\]\.zone: there is no zone "inner"; use one of external, internal, or define it/
    });
    const inner = { zones: { inner: { maxInflight: 3 } }, listeners: [{ kind: 'tcp', port: 0, zone: 'inner' }] };
    assert.equal((await read([], { file: inner })).listeners.at(-1)?.transport.common.zone, 'inner');
  });

  it('refuses a YAML file with more than one document, with CONFIG_INVALID', async () => {
    const shell = testShell();
    shell.files.set('e.yaml', 'node: a@b\n---\nnode: c@d\n');
    await assert.rejects(readServeSettings(['-c', 'e.yaml'], shell), {
      code: 'CONFIG_INVALID',
      message: 'e.yaml: it has more than one YAML document; keep one'
    });
  });

  it('reads YAML, and names the package to install if yaml is missing', async () => {
    const shell = testShell();
    shell.files.set('e.yaml', 'node: a@b\nzones:\n  inner: { maxInflight: 3 } # few\n');
    const { broker } = await readServeSettings(['-c', 'e.yaml'], shell);
    assert.deepEqual(broker, { node: 'a@b', zones: { inner: { maxInflight: 3 } } });
    const without = { ...shell, importPackage: () => Promise.reject(new Error('Cannot find package')) };
    await assert.rejects(readServeSettings(['-c', 'e.yaml'], without), {
      code: 'PACKAGE_MISSING',
      message: /npm install yaml/
    });
  });

  it('ignores the variables that Kubernetes sets for services whose names begin with this name', async () => {
    const env = {
      EMBERMQ_PORT: 'tcp://1',
      EMBERMQ_PORT_1883_TCP_ADDR: '1',
      EMBERMQ_SERVICE_HOST: '1',
      EMBERMQ_HTTP_PORT: 'tcp://1',
      EMBERMQ_HTTP_SERVICE_HOST: '1',
      EMBERMQ_SERVICE_PORT_MQTT: '1'
    };
    assert.deepEqual((await read([], { env })).broker, {});
  });

  it('refuses a listener that other machines can reach, unless anonymous clients are explicitly allowed', async () => {
    await assert.rejects(read(['--host', '0.0.0.0']), { code: 'ANONYMOUS_EXPOSED', message: /allowAnonymous: true/ });
    await assert.rejects(read(['--host', '0.0.0.0']), {
      message: /allowAnonymous: true .*, false if the users are added at run time$/
    });
    await read(['--host', '0.0.0.0'], { file: { allowAnonymous: false } });
    await assert.rejects(read([], { file: { listeners: [{ kind: 'tcp', port: 0, host: '::' }] } }), {
      code: 'ANONYMOUS_EXPOSED'
    });
    await read(['--host', '0.0.0.0', '--allow-anonymous']);
    await read(['--host', '0.0.0.0', '--password-file', 'users']);
    await read(['--host', '0.0.0.0'], { env: { EMBERMQ_PASSWORD_FILE: 'users' } });
    await assert.rejects(read(['--host', '0.0.0.0', '--acl-file', 'rules']), {
      code: 'ANONYMOUS_EXPOSED',
      message: /--password-file/
    });
    await assert.rejects(read(['--host', '0.0.0.0', '--password-file', 'users', '--bypass-auth-plugins']), {
      code: 'ANONYMOUS_EXPOSED',
      message: /its zone "external" has bypassAuthPlugins/
    });
    await assert.rejects(read(['--password-file=']), { code: 'OPTION_INVALID', message: /^--password-file: / });
    await read(['--host', '0.0.0.0'], { file: { allowAnonymous: true } });
    await read(['--host', '0.0.0.0'], { env: { EMBERMQ_ALLOW_ANONYMOUS: 'true' } });
    await read(['--host', '0.0.0.0'], { file: { 'zone.external.allow_anonymous': true } });
    const psk = { kind: 'tls', port: 0, host: '::', pskFile: 'keys' };
    await read([], { file: { listeners: [psk] } });
    await assert.rejects(read([], { file: { listeners: [{ ...psk, certFile: 'c', keyFile: 'k' }] } }), {
      code: 'ANONYMOUS_EXPOSED'
    });
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'])
      await read(['--host', host]);
    for (const host of ['::ffff:0.0.0.0', '::ffff:10.0.0.1', '127.0.0.1.example', '127.1.2.999', 'broker.local', '::'])
      await assert.rejects(read(['--host', host]), { code: 'ANONYMOUS_EXPOSED' }, host);
    for (const [variable, text] of Object.entries({ EMBERMQ_HOST: '', EMBERMQ_CONFIG: '', EMBERMQ_CERT: '' }))
      await assert.rejects(read([], { env: { [variable]: text } }), {
        code: 'OPTION_INVALID',
        message: /expected an? /
      });
  });

  it('ANONYMOUS_EXPOSED: checks the options of a listener after reading, in any spelling', async () => {
    const files = { certFile: 'c', keyFile: 'k' };
    const withCa = { ...files, caFile: 'a' };
    const listen = (options: object, more: object = {}) =>
      read([], { file: { listeners: [{ kind: 'tls', port: 0, host: '0.0.0.0', ...options }], ...more } });
    const refused: [options: object, more?: object][] = [
      [files],
      [{ ...withCa, requestCert: false }],
      [{ ...withCa, request_cert: 'off' }],
      [{ ...withCa, rejectUnauthorized: false }],
      [{ ...withCa, reject_unauthorized: 'off' }],
      [{ ...withCa, fail_if_no_peer_cert: '0' }],
      [{ ...files, requestCert: true }],
      [{ ...files, caFile: [] }],
      [{ ...files, ca: [] }],
      [{ ...files, pskFile: 'p' }],
      [{ certfile: 'c', keyfile: 'k', 'psk.file.path': 'p' }],
      [{ pskFile: 'p', ciphers: 'ALL:@SECLEVEL=0' }],
      [{ pskFile: 'p', ciphers: 'PSK,aNULL' }],
      [files, { zones: { external: { bypassAuthPlugins: true, allowAnonymous: false } } }],
      [files, { allow_anonymous: false, 'zone.external.bypass_auth_plugins': 'on' }],
      [files, { zones: { inner: { allowAnonymous: true } } }],
      [{ ...files, zone: 'constructor' }],
      [{ kind: 'wss', ...files }],
      [{ kind: 'tcp' }, { 'zone.__proto__.allow_anonymous': true }]
    ];
    for (const [options, more] of refused) {
      const expected = { code: 'ANONYMOUS_EXPOSED', message: /^e\.json: listeners\[0\]: 0\.0\.0\.0 can be reached/ };
      await assert.rejects(listen(options, more), expected, JSON.stringify([options, more]));
    }
    const admitted: [options: object, more?: object][] = [
      [withCa],
      [{ ...files, cacertfile: ['a'], requestCert: 'on' }],
      [{ ...withCa, pskFile: 'p' }],
      [{ pskFile: 'p', ciphers: 'DHE-PSK-AES128-GCM-SHA256:!aNULL:@SECLEVEL=1:TLS_AES_128_GCM_SHA256' }],
      [files, { zones: { external: { allow_anonymous: 'off' } } }],
      [files, { allowAnonymous: false }],
      [{ ...files, zone: 'inner' }, { 'zone.inner.allow_anonymous': true }],
      [withCa, { bypassAuthPlugins: true }],
      [{ kind: 'tcp' }, { allowAnonymous: true, bypassAuthPlugins: true }]
    ];
    for (const [options, more] of admitted)
      await assert.doesNotReject(listen(options, more), JSON.stringify([options, more]));
  });

  it('requires certificate and key for TLS, and TLS for certificate and key', async () => {
    await assert.rejects(read(['--mqtts-port', '8883']), {
      code: 'OPTION_MISSING',
      message: /--cert FILE and --key FILE/
    });
    for (const args of [
      ['--cert', 'c'],
      ['--key', 'k'],
      ['--ca', 'a'],
      ['--cert', 'c', '--key', 'k', '--mqtts-port', 'off']
    ])
      await assert.rejects(read(args), { code: 'OPTION_MISSING', message: /--cert.*--key/ }, args.join(' '));
    const { listeners } = await read([
      '--mqtts-port',
      '0',
      '--wss-port',
      '0',
      '--cert',
      'c',
      '--key',
      'k',
      '--ca',
      'a',
      '--host',
      '0.0.0.0',
      '--mqtt-port',
      'off',
      '--ws-port',
      'off'
    ]);
    assert.deepEqual(outlined(listeners), [
      ['tls', 'mqtts', '0.0.0.0', 0],
      ['wss', 'wss', '0.0.0.0', 0]
    ]);
    for (const { transport } of listeners) {
      const { certFile, keyFile, caFile, watchInterval } = transport.tls ?? {};
      assert.deepEqual([certFile, keyFile, caFile, watchInterval], ['c', 'k', ['a'], 60_000]);
    }
  });

  it('opens MQTT over TLS on 8883 for --cert and --key alone, and not if another TLS port is set', async () => {
    const files = ['--cert', 'c', '--key', 'k'];
    const tlsOf = async (...args: string[]) => {
      const { listeners } = await read([...files, ...args]);
      return listeners.filter(({ transport }) => transport.tls !== undefined);
    };
    const [implied, ...others] = await tlsOf();
    assert.deepEqual(outlined([implied]), [['tls', 'mqtts', '127.0.0.1', 8883]]);
    assert.deepEqual(others, []);
    assert.equal(implied.isOptional, true);
    assert.equal((await tlsOf('--mqtts-port', '8883'))[0].isOptional, false);
    assert.deepEqual(outlined(await tlsOf('--wss-port', '8084')), [['wss', 'wss', '127.0.0.1', 8084]]);
    assert.deepEqual(outlined(await tlsOf('--wss-port', 'off')), [['tls', 'mqtts', '127.0.0.1', 8883]]);
  });

  it('persists state in ./data unless the flags, the environment or the file disable it', async () => {
    const { own } = await read([]);
    assert.deepEqual([own.dataDir, own.durability, own.memory], ['./data', 'process', false]);
    const told = await read(['--data-dir', 'c'], {
      file: { data_dir: 'a', durability: 'process' },
      env: { EMBERMQ_DATA_DIR: 'b', EMBERMQ_DURABILITY: 'power' }
    });
    assert.deepEqual([told.own.dataDir, told.own.durability, told.own.memory], ['c', 'power', false]);
    await assert.rejects(read(['--durability', 'disk']), {
      code: 'OPTION_INVALID',
      message: /^--durability: expected one of process, power/
    });
    await assert.rejects(read(['--data-dir=']), { code: 'OPTION_INVALID', message: /^--data-dir: expected a folder/ });
  });

  it('verifies the files of the folder unless a flag, the environment or the file turns this off', async () => {
    const verifyOf = async (...given: Parameters<typeof read>) => (await read(...given)).own.verifyStore;
    assert.equal(await verifyOf([]), true);
    assert.equal(await verifyOf(['--no-verify-store']), false);
    assert.equal(await verifyOf([], { env: { EMBERMQ_VERIFY_STORE: 'off' } }), false);
    assert.equal(await verifyOf([], { file: { verify_store: false } }), false);
    assert.equal(await verifyOf(['--verify-store'], { env: { EMBERMQ_VERIFY_STORE: 'off' } }), true);
    await assert.rejects(read(['--verify-store=maybe']), { code: 'OPTION_INVALID', message: /^--verify-store: / });
  });

  it('reads --reserve, the disk space that the folder reserves for a full disk', async () => {
    const reserveOf = async (...given: Parameters<typeof read>) => (await read(...given)).own.reserve;
    assert.equal(await reserveOf([]), undefined);
    assert.equal(await reserveOf(['--reserve', '16MB']), 16 * 2 ** 20);
    assert.equal(await reserveOf(['--reserve', '0'], { env: { EMBERMQ_RESERVE: '8MB' } }), 0);
    assert.equal(await reserveOf([], { env: { EMBERMQ_RESERVE: '8MB' } }), 8 * 2 ** 20);
    assert.equal(await reserveOf([], { file: { reserve: '8MB' } }), 8 * 2 ** 20);
    await assert.rejects(read(['--reserve', 'much']), { code: 'OPTION_INVALID', message: /^--reserve: / });
    await assert.rejects(read(['--memory', '--reserve', '8MB']), { message: /so --reserve has no effect/ });
  });

  it('refuses --memory together with an option about the data folder, and names both', async () => {
    const message = /^--memory persists nothing, so --data-dir has no effect: remove one of them$/;
    await assert.rejects(read(['--memory', '--data-dir', 'a']), { code: 'OPTION_INVALID', message });
    await assert.rejects(read(['--memory', '--durability', 'process']), { message: /so --durability has no effect/ });
    await assert.rejects(read(['--memory', '--no-verify-store']), { message: /so --verify-store has no effect/ });
    await assert.rejects(read([], { env: { EMBERMQ_MEMORY: 'on', EMBERMQ_DURABILITY: 'power' } }), {
      message: /^EMBERMQ_MEMORY persists nothing, so EMBERMQ_DURABILITY has no effect/
    });
    await assert.rejects(read([], { file: { memory: true, data_dir: 'a' } }), {
      message: /^e\.json: memory persists nothing, so e\.json: data_dir has no effect/
    });
    const { own } = await read(['--no-memory', '--data-dir', 'a']);
    assert.deepEqual([own.dataDir, own.memory], ['a', false]);
  });

  it('lets flags override the environment and the file for persistence, and the environment override the file', async () => {
    const memoryOf = async (...given: Parameters<typeof read>) => (await read(...given)).own.memory;
    const inMemory = { memory: true };
    const inFolder = { dataDir: 'a', durability: 'power' };
    for (const [text, memory] of [
      ['1', true],
      ['0', false]
    ] as const)
      assert.equal(await memoryOf([], { env: { EMBERMQ_MEMORY: text } }), memory);
    assert.equal(await memoryOf(['--memory'], { file: inFolder, env: { EMBERMQ_DATA_DIR: 'b' } }), true);
    assert.equal(await memoryOf(['--data-dir', 'c'], { file: inMemory }), false);
    assert.equal(await memoryOf(['--durability', 'power'], { env: { EMBERMQ_MEMORY: 'true' } }), false);
    assert.equal(await memoryOf([], { file: inFolder, env: { EMBERMQ_MEMORY: 'true' } }), true);
    assert.equal(await memoryOf([], { file: inMemory, env: { EMBERMQ_DATA_DIR: 'b' } }), false);
    assert.equal(await memoryOf(['--memory'], { file: inMemory, env: { EMBERMQ_DATA_DIR: 'b' } }), true);
  });

  it('reads further listeners from the config file', async () => {
    const { listeners } = await read(['--mqtt-port', 'off', '--ws-port', 'off'], {
      file: { listeners: [{ kind: 'unix', path: '/run/e.sock' }] }
    });
    assert.deepEqual(outlined(listeners), [['unix', undefined, '/run/e.sock']]);
    await assert.rejects(read([], { file: { listeners: [{ kind: 'udp' }] } }), {
      message: /listeners\[0\]\.kind: expected one of tcp/
    });
    await assert.rejects(read([], { file: { listeners: [{ kind: 'tcp', port: 0, prot: 1 }] } }), {
      code: 'OPTION_UNKNOWN',
      message: /^e\.json: listeners\[0\]: unknown option "prot"/
    });
    const proto = '{"listeners":[{"kind":"tcp","port":0,"__proto__":{"host":"0.0.0.0"}}]}';
    await assert.rejects(read([], { file: proto }), { code: 'OPTION_UNKNOWN', message: /"__proto__"/ });
  });
});
