import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { ORIGINAL_SETTINGS } from '../support/management-tables.ts';
import { testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-import-'));
let folders = 0;
after(() => rmSync(home, { recursive: true, force: true }));

interface Refused {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}

interface Imported {
  readonly folder: string;
  readonly code: number;
  readonly refused: readonly Refused[];
  readonly config: Record<string, unknown>;
  readonly rules: readonly unknown[];
  readonly err: string;
}

/** Write files to a new folder, and import the first one. `DIR` in them is replaced by the folder. */
async function imported(files: Readonly<Record<string, string>>, ...args: string[]): Promise<Imported> {
  const folder = join(home, `${folders++}`);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text.replaceAll('DIR', folder));
  }
  const shell = testShell();
  const out = join(folder, 'embermq.json');
  const code = await runCommand(
    ['import', join(folder, Object.keys(files)[0]), '--out', out, '--json', ...args],
    shell
  );
  const rules = join(folder, 'embermq.acl.json');
  return {
    folder,
    code,
    refused: code === 0 ? (JSON.parse(shell.out()) as Refused[]) : [],
    config: existsSync(out) ? JSON.parse(readFileSync(out, 'utf8')) : {},
    rules: existsSync(rules) ? JSON.parse(readFileSync(rules, 'utf8')) : [],
    err: shell.err()
  };
}

/** The lines that are not taken over: their text and reason. */
function listed({ refused }: Imported): string[] {
  return refused.map(({ line, text, reason }) => `${line}: ${text}: ${reason}`);
}

/** Read a config file as serve does. */
function served({ folder }: Imported) {
  return readServeSettings(['--config', join(folder, 'embermq.json')], testShell());
}

/** The lines before those of the settings of mosquitto.conf. */
const LISTENER = 'listener 1884 127.0.0.1\n';
const TLS = `${LISTENER}cafile ca\ncertfile c\nkeyfile k\nrequire_certificate true\n`;
const BRIDGE = `${LISTENER}connection x\naddress a.example\ntopic t out\n`;

/**
 * Each setting that the manual of mosquitto 2.0 names, with a value. `is default`: the line asks for what a broker does
 * anyway, so it changes nothing.
 */
const MANUAL: readonly (readonly [line: string, before?: string, isDefault?: 'is default'])[] = [
  ['acl_file DIR/acl', LISTENER],
  ['allow_anonymous true', LISTENER],
  ['allow_duplicate_messages true'],
  ['allow_zero_length_clientid true', '', 'is default'],
  ['allow_zero_length_clientid false'],
  ['auth_opt_db_host localhost'],
  ['auth_plugin /usr/lib/plugin.so'],
  ['auth_plugin_deny_special_chars true'],
  ['auto_id_prefix auto-'],
  ['autosave_interval 1800'],
  ['autosave_on_changes false'],
  ['check_retain_source true'],
  ['clientid_prefixes secure-'],
  ['connection_messages true'],
  ['include_dir DIR/conf.d'],
  ['log_dest stderr'],
  ['log_facility 5'],
  ['log_timestamp true'],
  ['log_timestamp_format %Y-%m-%dT%H:%M:%S'],
  ['log_type debug'],
  ['max_inflight_bytes 100000'],
  ['max_inflight_messages 40'],
  ['max_keepalive 600'],
  ['max_packet_size 100000'],
  ['max_queued_bytes 1000000'],
  ['max_queued_messages 500'],
  ['memory_limit 100000000'],
  ['message_size_limit 1000'],
  ['password_file DIR/users', LISTENER],
  ['per_listener_settings false', '', 'is default'],
  ['persistence false'],
  ['persistence_file mosquitto.db'],
  ['persistence_location /var/lib/mosquitto/'],
  ['persistent_client_expiration 2m'],
  ['pid_file /run/mosquitto.pid'],
  ['plugin /usr/lib/plugin.so'],
  ['plugin_opt_config /etc/config'],
  ['psk_file DIR/keys', `${LISTENER}psk_hint hint\n`],
  ['queue_qos0_messages false'],
  ['retain_available false'],
  ['set_tcp_nodelay true', LISTENER],
  ['sys_interval 30'],
  ['upgrade_outgoing_qos true'],
  ['user mosquitto'],
  ['bind_address 127.0.0.2'],
  ['bind_interface eth0', LISTENER],
  ['http_dir /var/www', LISTENER],
  ['listener 1885 127.0.0.1', LISTENER],
  ['max_connections 100', LISTENER],
  ['max_qos 1', LISTENER],
  ['max_topic_alias 5', LISTENER],
  ['mount_point site/', LISTENER],
  ['port 1886'],
  ['protocol websockets', LISTENER],
  ['socket_domain ipv6', 'listener 1884\n'],
  ['use_username_as_clientid true', LISTENER],
  ['websockets_log_level 0', LISTENER],
  ['websockets_headers_size 4096', LISTENER],
  ['cafile other', TLS],
  ['capath /etc/ssl/certs', TLS],
  ['certfile other', TLS],
  ['ciphers ECDHE-RSA-AES256-GCM-SHA384', TLS],
  ['ciphers_tls1.3 TLS_AES_128_GCM_SHA256', TLS],
  ['crlfile crl', TLS],
  ['dhparamfile dh', TLS],
  ['keyfile other', TLS],
  ['require_certificate false', TLS],
  ['tls_engine tpm', TLS],
  ['tls_engine_kpass_sha1 abcdef', TLS],
  ['tls_keyform engine', TLS],
  ['tls_version tlsv1.3', TLS],
  ['use_identity_as_username true', TLS],
  ['use_subject_as_username true', TLS],
  ['psk_hint hint', LISTENER],
  ['address b.example:1884', BRIDGE],
  ['addresses b.example:1884 c.example', BRIDGE],
  ['bridge_attempt_unsubscribe true', BRIDGE],
  ['bridge_bind_address 192.0.2.1', BRIDGE],
  ['bridge_max_packet_size 1000', BRIDGE],
  ['bridge_outgoing_retain false', BRIDGE],
  ['bridge_protocol_version mqttv50', BRIDGE],
  ['cleansession true', BRIDGE],
  ['local_cleansession true', BRIDGE],
  ['connection y', BRIDGE],
  ['keepalive_interval 30', BRIDGE],
  ['idle_timeout 30', BRIDGE],
  ['local_clientid l', BRIDGE],
  ['local_password p', BRIDGE],
  ['local_username u', BRIDGE],
  ['notifications true', BRIDGE],
  ['notifications false', BRIDGE, 'is default'],
  ['notifications_local_only true', BRIDGE],
  ['notification_topic state', BRIDGE],
  ['remote_clientid r', BRIDGE],
  ['clientid r', BRIDGE],
  ['remote_password p', BRIDGE],
  ['password p', BRIDGE],
  ['remote_username u', BRIDGE],
  ['username u', BRIDGE],
  ['restart_timeout 10 30', BRIDGE],
  ['round_robin true', BRIDGE],
  ['start_type automatic', BRIDGE, 'is default'],
  ['start_type lazy', BRIDGE],
  ['threshold 10', BRIDGE],
  ['topic a/# both 2 l/ r/', BRIDGE],
  ['try_private false', BRIDGE],
  ['bridge_alpn mqtt', BRIDGE],
  ['bridge_cafile DIR/ca.pem', BRIDGE],
  ['bridge_capath /etc/ssl', BRIDGE],
  ['bridge_certfile DIR/missing.pem', BRIDGE],
  ['bridge_identity i', BRIDGE],
  ['bridge_insecure true', BRIDGE],
  ['bridge_keyfile DIR/missing.key', BRIDGE],
  ['bridge_psk abcd', BRIDGE],
  ['bridge_require_ocsp true', BRIDGE],
  ['bridge_tls_version tlsv1.2', BRIDGE]
];

const UNKNOWN = 'is not a setting of mosquitto.conf that is known here';

describe('import of mosquitto.conf', () => {
  const more = {
    'conf.d/a.conf': 'max_packet_size 1000\n',
    acl: 'user ann\ntopic read a\n',
    users: 'ann:$7$101$AAAA$AAAA\n',
    keys: 'a:00\n'
  };

  for (const [line, before = '', isDefault] of MANUAL)
    it(`takes over or lists the setting: ${line}${before === '' ? '' : ` (after ${before.trim().split('\n').at(-1)})`}`, async () => {
      const without = await imported({ 'mosquitto.conf': before, ...more });
      const result = await imported({ 'mosquitto.conf': `${before}${line}\n`, ...more });
      assert.equal(result.code, 0, result.err);
      const number = before.split('\n').length;
      const isListed = result.refused.some((one) => one.line === number && one.reason !== UNKNOWN);
      const plain = ({ config, folder }: Imported) => JSON.stringify(config).replaceAll(folder, 'DIR');
      const isTaken = plain(result) !== plain(without);
      const replaced = result.refused.filter((one) => one.line < number && !one.reason.endsWith('sets it again'));
      if (isDefault !== undefined) assert.deepEqual([isTaken, isListed], [false, false]);
      else assert.ok(isTaken || isListed, `${plain(result)} ${listed(result)}`);
      // a bridge or a listener that cannot be used because of the line is listed by its first line
      for (const one of replaced)
        assert.match(one.text, /^(listener|connection|cafile|certfile|keyfile|require_certificate|psk_hint)/);
      await served(result);
    });

  it('knows every setting that the manual on this machine names', (t) => {
    const { stdout, error, status } = spawnSync('man', ['-P', 'cat', 'mosquitto.conf'], {
      encoding: 'utf8',
      env: { ...process.env, MANWIDTH: '80' }
    });
    if (error !== undefined || status !== 0 || !/mosquitto\.conf/.test(stdout))
      return t.skip('there is no manual of mosquitto');
    const plain = stdout.replaceAll(/.[\b]/g, '');
    const options = plain.slice(plain.indexOf('GENERAL OPTIONS'), plain.lastIndexOf('FILES'));
    // names stand alone at the beginning of an entry, with their value
    const names = [
      ...options.matchAll(
        /^ {7}([a-z]+_[\w.]+|ciphers|cafile|capath|certfile|crlfile|keyfile|port|user|listener|protocol|persistence|connection|topic|address|threshold|notifications|cleansession|dhparamfile)(?= [a-z[<])/gm
      )
    ].map(([, name]) => name);
    assert.ok(names.length > 90, `${names.length}`);
    const known = new Set(MANUAL.map(([line]) => line.split(' ')[0]));
    assert.deepEqual(
      names.filter((name) => !known.has(name) && !/^auth_opt_/.test(name)),
      []
    );
    return undefined;
  });

  it('lists a line that is not known, each line of a file once, and no line that was taken over', async () => {
    const text = `# comment\n\n${LISTENER}frobnicate 7\nsys_interval soon\nmax_qos 7\nmax_packet_size 64000\n`;
    const result = await imported({ 'mosquitto.conf': text });
    assert.deepEqual(
      listed(result).map((one) => one.split(':').slice(0, 2).join(':')),
      ['4: frobnicate 7', '5: sys_interval soon', '6: max_qos 7']
    );
    assert.equal(result.config.maxPacketSize, 64_000);
    for (const { file } of result.refused) assert.equal(file, join(result.folder, 'mosquitto.conf'));
  });

  it('writes listeners with their addresses, protocols and certificates', async () => {
    const result = await imported({
      'mosquitto.conf': `listener 1883\nsocket_domain ipv4\nlistener 8884 ::1\nprotocol websockets\n${TLS.replace('1884', '8883')}listener 0 DIR/socket\n`
    });
    assert.deepEqual(listed(result), []);
    const { listeners } = await served(result);
    const places = listeners.map(({ transport: { kind, place } }) => [
      kind,
      'path' in place ? place.path : `${place.host} ${place.port}`
    ]);
    assert.deepEqual(places.slice(0, 4), [
      ['tcp', '0.0.0.0 1883'],
      ['ws', '::1 8884'],
      ['tls', '127.0.0.1 8883'],
      ['unix', join(result.folder, 'socket')]
    ]);
  });

  it('opens port 1883 of this machine, without passwords, if the file names no listener', async () => {
    const result = await imported({ 'mosquitto.conf': 'max_qos 1\n' });
    assert.deepEqual((result.config.listeners as object[])[0], {
      kind: 'tcp',
      port: 1883,
      host: '127.0.0.1',
      zone: 'listener-1883'
    });
    assert.equal(result.config.allowAnonymous, true);
    const closed = await imported({ 'mosquitto.conf': 'port 1883\n' });
    assert.equal(closed.config.allowAnonymous, false, 'as mosquitto does since 2.0');
  });

  it('includes the files of a folder, in their order, at the place of the line', async () => {
    const result = await imported({
      'mosquitto.conf': `${LISTENER}include_dir DIR/conf.d\nmax_packet_size 3000\n`,
      'conf.d/b.conf': 'max_connections 7\nnonsense\n',
      'conf.d/a.conf': 'max_packet_size 1000\nlistener 1999 127.0.0.1\n',
      'conf.d/readme.txt': 'not a config file\n'
    });
    assert.equal(result.config.maxPacketSize, 3000);
    assert.deepEqual(
      (result.config.listeners as { maxConnections?: number }[]).map(({ maxConnections }) => maxConnections),
      [undefined, 7]
    );
    assert.deepEqual(
      result.refused.map(({ file, line, text }) => [file.slice(result.folder.length + 1), line, text]),
      [
        ['conf.d/a.conf', 1, 'max_packet_size 1000'],
        ['conf.d/b.conf', 2, 'nonsense']
      ]
    );
  });

  it('does not take over listeners with other users or rules than the first, because sources are for all listeners', async () => {
    const result = await imported({
      'mosquitto.conf': `per_listener_settings true
listener 1883 127.0.0.1
password_file DIR/users
listener 1884 127.0.0.1
allow_anonymous true
listener 1885 127.0.0.1
password_file DIR/users
allow_anonymous true
`,
      users: 'ann:$7$101$AAAA$AAAA\n'
    });
    assert.deepEqual(
      (result.config.listeners as object[]).map((one) => (one as { port: number }).port),
      [1883, 1885]
    );
    assert.deepEqual(
      result.refused.map(({ line }) => line),
      [4, 5]
    );
    assert.match(result.refused[0].reason, /differ from those of port 1883: run a second broker/);
    assert.deepEqual(result.config.zones, { 'listener-1883': { allowAnonymous: false } });
  });

  it('makes rules that the access rules page describes, and lists lines of the ACL file that cannot be a rule', async () => {
    const acl = `topic read public/#
user ann
topic deny a/b
topic readwrite a/#
topic x y
topic read a/#/b
pattern read %c/in
pattern read x%u
topic read %u/in
verb read a
`;
    const files = { 'mosquitto.conf': `${LISTENER}acl_file DIR/acl\nallow_anonymous true\n`, acl };
    const result = await imported(files);
    assert.deepEqual(result.rules, [
      { access: 'deny', username: 'ann', action: 'pubsub', topic: 'a/b' },
      { access: 'allow', username: 'ann', action: 'pubsub', topic: 'a/#' },
      { access: 'allow', hasUsername: true, action: 'subscribe', topic: '%c/in' },
      { access: 'deny', hasUsername: true, action: 'pubsub', topic: '#' },
      { access: 'deny', hasUsername: true, action: 'pubsub', topic: '$SYS/#' },
      { access: 'allow', action: 'subscribe', topic: 'public/#' },
      { access: 'allow', action: 'subscribe', topic: '%c/in' }
    ]);
    assert.deepEqual(
      result.refused.map(({ line }) => line),
      [5, 6, 8, 9, 10]
    );
    assert.equal(result.config.aclNomatch, 'deny');
    assert.equal(result.config.aclFile, join(result.folder, 'embermq.acl.json'));
    const named = await imported({
      ...files,
      'mosquitto.conf': `${LISTENER}acl_file DIR/acl\nallow_anonymous false\n`
    });
    assert.deepEqual(named.refused[0], {
      file: join(named.folder, 'acl'),
      line: 1,
      text: 'topic read public/#',
      reason: 'is for clients without a user name, of which none can connect'
    });
    const missing = await imported({ 'mosquitto.conf': `${LISTENER}acl_file DIR/none\n` });
    assert.match(listed(missing)[0], /acl_file .*ENOENT/);
    assert.equal(missing.config.aclNomatch, 'deny', 'nothing is allowed rather than everything');
  });

  it('writes bridges with addresses, topics, prefixes and credentials', async () => {
    const result = await imported({
      'mosquitto.conf': `persistence true
${LISTENER}connection to cloud
address mqtt.example:8884
remote_username site
remote_password s3cret
topic sensors/# out 1 "" site1/
topic cmd/# in 2
topic both/# both
restart_timeout 10 60
connection other
address [::1]:1999
topic a
cleansession true
bridge_protocol_version mqttv50
`
    });
    assert.deepEqual(listed(result), []);
    assert.deepEqual(result.config.bridges, [
      {
        name: 'to-cloud',
        url: 'mqtt://mqtt.example:8884',
        version: 4,
        bridgeBit: true,
        username: 'site',
        password: 's3cret',
        backOff: '10s',
        maxBackOff: '60s',
        isPersisted: true,
        out: [
          { filter: 'sensors/#', qos: 1, remotePrefix: 'site1/' },
          { filter: 'both/#', qos: 0 }
        ],
        in: [
          { filter: 'cmd/#', qos: 2 },
          { filter: 'both/#', qos: 0 }
        ]
      },
      { name: 'other', url: 'mqtt://[::1]:1999', version: 5, clean: true, out: [{ filter: 'a', qos: 0 }] }
    ]);
    assert.equal((await served(result)).bridges.length, 2);
  });

  it('shows no passwords in the list', async () => {
    const { refused } = await imported({ 'mosquitto.conf': `${BRIDGE}local_password hidden\nbridge_psk c0ffee\n` });
    assert.deepEqual(
      refused.map(({ text }) => text),
      ['local_password ******', 'bridge_psk ******']
    );
  });

  it('hides passwords that occur in the name of the setting, and those of plugins', async () => {
    const { refused } = await imported({
      'mosquitto.conf': `${BRIDGE}local_password pass\nauth_opt_pass hunter2\nauth_opt_db postgres://u:hunter3@h/db\n`
    });
    assert.deepEqual(
      refused.map(({ text }) => text),
      ['local_password ******', 'auth_opt_pass ******', 'auth_opt_db postgres://***@h/db']
    );
  });
});

describe('import of emqx.conf', () => {
  /** The reason of each line that is not taken over, by the name of the setting. */
  const reasons = ({ refused }: Imported) =>
    Object.fromEntries(refused.map(({ text, reason }) => [text.split(' ')[0], reason]));

  it('takes over every setting that the page about the migration lists, as it is written there', async () => {
    const lines = Object.entries(ORIGINAL_SETTINGS).flatMap(([key, value]) =>
      value === undefined ? [] : [`${key} = ${value}`]
    );
    const result = await imported({ 'emqx.conf': lines.join('\n') });
    assert.deepEqual(listed(result), []);
    for (const key of Object.keys(ORIGINAL_SETTINGS).filter((one) => ORIGINAL_SETTINGS[one] !== undefined))
      assert.ok(key in result.config, key);
    await served(result);
  });

  it('names the place or the reason for settings that have another place or none', async () => {
    const text = `node.cookie = secret
node.data_dir = data
cluster.name = emqxcl
rpc.mode = async
plugins.etc_dir = etc/plugins/
log.to = file
log.level = warning
dashboard.listener.http = 18083
sysmon.long_gc = 0
zone.external.enable_acl = on
zone.external.max_inflght = 7
zone.external.max_inflight = many
made.up = 1
no equals sign
broker.sys_interval = 1m
broker.sys_interval = 2m
`;
    const result = await imported({ 'emqx.conf': text });
    const found = reasons(result);
    assert.deepEqual(Object.keys(found).length, 14);
    assert.equal(found['cluster.name'], 'is about a cluster; there is one process');
    assert.match(found['node.data_dir'], /cannot be read; the store is in the folder dataDir/);
    assert.match(found['sysmon.long_gc'], /Erlang runtime/);
    assert.match(found['zone.external.enable_acl'], /a broker without access rules allows everything/);
    assert.match(found['zone.external.max_inflght'], /did you mean "maxInflight"|max_?inflight/i);
    assert.match(found['made.up'], /^unknown option/);
    assert.match(found.no, /expected "name = value"/);
    assert.match(found['broker.sys_interval'], /line 16 sets it again/);
    assert.deepEqual(result.refused.find(({ text }) => text.startsWith('node.cookie'))?.text, 'node.cookie = ******');
    assert.equal(result.config.logLevel, 'warn');
    assert.equal(result.config['broker.sys_interval'], '2m');
    await served(result);
  });

  it('writes listeners with zones, certificates and limits', async () => {
    const text = `listener.tcp.external = 0.0.0.0:1883
listener.tcp.external.max_connections = 1000
listener.tcp.external.max_conn_rate = 100
listener.tcp.external.zone = external
listener.tcp.internal = 127.0.0.1:11883
listener.tcp.internal.zone = internal
listener.tcp.internal.proxy_protocol = on
listener.ssl.external = 8883
listener.ssl.external.keyfile = {{ platform_etc_dir }}/certs/key.pem
listener.ssl.external.certfile = etc/certs/cert.pem
listener.ssl.external.cacertfile = etc/certs/cacert.pem
listener.ssl.external.verify = verify_peer
listener.ssl.external.fail_if_no_peer_cert = true
listener.ssl.external.peer_cert_as_username = cn
listener.ssl.external.tls_versions = tlsv1.3,tlsv1.2
listener.ssl.external.ciphers = ECDHE-RSA-AES256-GCM-SHA384,ECDHE-RSA-AES128-GCM-SHA256
listener.ssl.external.depth = 10
listener.ws.external = 8083
listener.ws.external.mqtt_path = /mqtt
listener.ws.external.zone = nowhere
listener.ws.external.access.1 = deny 10.0.0.0/8
listener.wss.external = 8084
`;
    const result = await imported({
      'etc/emqx.conf': text,
      'etc/certs/cert.pem': 'x',
      'etc/certs/key.pem': 'x',
      'etc/certs/cacert.pem': 'x'
    });
    const found = reasons(result);
    assert.deepEqual(Object.keys(found), [
      'listener.tcp.internal.proxy_protocol',
      'listener.ssl.external.depth',
      'listener.ws.external.zone',
      'listener.ws.external.access.1',
      'listener.wss.external'
    ]);
    assert.match(found['listener.wss.external'], /certificate|cert/);
    const at = (name: string) => join(result.folder, 'etc', '..', 'etc', 'certs', name);
    assert.deepEqual(result.config.listeners, [
      { kind: 'tcp', port: 1883, host: '0.0.0.0', maxConnections: 1000, maxConnRate: 100, zone: 'external' },
      { kind: 'tcp', port: 11_883, host: '127.0.0.1', zone: 'internal' },
      {
        kind: 'tls',
        port: 8883,
        host: '0.0.0.0',
        keyFile: at('key.pem'),
        certFile: at('cert.pem'),
        caFile: at('cacert.pem'),
        requestCert: true,
        rejectUnauthorized: true,
        usernameFrom: 'cn',
        minVersion: 'TLSv1.2',
        ciphers: 'ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256'
      },
      { kind: 'ws', port: 8083, host: '0.0.0.0', path: '/mqtt' }
    ]);
    await served(result);
  });

  it('writes subscriptions and rewrite rules as lists, and webhooks as they are', async () => {
    const text = `module.subscription.1.topic = connected/%c/%u
module.subscription.1.qos = 1
module.subscription.2.qos = 1
module.rewrite.pub.rule.1 = x/# ^x/y/(.+)$ z/y/$1
module.rewrite.rule.2 = y/# ^y/(.+)$
web.hook.api.url = http://127.0.0.1:8080
web.hook.rule.client.connect.1 = {"action": "on_client_connect"}
`;
    const result = await imported({ 'emqx.conf': text });
    assert.deepEqual(
      result.refused.map(({ line }) => line),
      [3, 5]
    );
    assert.deepEqual(result.config.autoSubscriptions, [{ topic: 'connected/%c/%u', qos: 1 }]);
    assert.deepEqual(result.config.rewrite, [
      { filter: 'x/#', pattern: '^x/y/(.+)$', target: 'z/y/$1', on: 'publish' }
    ]);
    const { webhooks } = await served(result);
    assert.equal(webhooks.length, 1);
  });

  it('uses acl.conf unchanged, with the defaults of EMQX, and denies everything if it cannot be read', async () => {
    const acl = '{allow, {user, "ann"}, pubsub, ["a/#"]}.\n{deny, all}.\n';
    const result = await imported({ 'emqx.conf': 'acl_file = DIR/acl.conf\n', 'acl.conf': acl });
    assert.equal(result.config.aclFile, join(result.folder, 'acl.conf'));
    assert.deepEqual([result.config.allow_anonymous, result.config.acl_nomatch], [true, 'allow']);
    const alone = await imported({ 'acl.conf': acl });
    assert.deepEqual(alone.config, {
      aclFile: join(alone.folder, 'acl.conf'),
      allow_anonymous: true,
      acl_nomatch: 'allow'
    });
    const broken = await imported({ 'emqx.conf': 'acl_file = DIR/acl.conf\n', 'acl.conf': '{permit, all}.\n' });
    assert.match(listed(broken)[0], /expected allow or deny/);
    assert.equal(broken.config.acl_nomatch, 'deny');
  });

  it('denies everything if acl.conf cannot be read, also if a line allows what no rule matches', async () => {
    for (const [text, at] of [
      ['acl_file = DIR/acl.conf\nacl_nomatch = allow\n', 2],
      ['acl_nomatch = allow\nacl_file = DIR/none.conf\n', 1]
    ] as const) {
      const result = await imported({ 'emqx.conf': text, 'acl.conf': '{permit, all}.\n' });
      assert.equal(result.config.acl_nomatch, 'deny');
      assert.deepEqual(
        result.refused.map(({ line }) => line),
        [1, 2]
      );
      assert.match(listed(result)[at - 1], /acl_nomatch = allow: the access rules cannot be read/);
    }
    const again = await imported({
      'emqx.conf': 'acl_file = DIR/none.conf\nacl_file = DIR/acl.conf\n',
      'acl.conf': '{allow, all}.\n'
    });
    assert.equal(again.config.aclFile, join(again.folder, 'acl.conf'));
    assert.equal(again.config.acl_nomatch, 'allow');
  });

  it('shows no secrets in the list', async () => {
    const { refused } = await imported({
      'emqx.conf': `auth.http.auth_req.headers.authorization = Bearer hunter2
auth.ldap.bind_pass = hunter2
auth.mysql.password hunter2
auth.mysql.server = mysql://u:hunter2@h
auth.mysql.password = word
`
    });
    assert.equal(refused.length, 5);
    assert.doesNotMatch(JSON.stringify(refused), /hunter2|= word/);
  });
});

describe('import of hostile files', () => {
  it('takes over no names that are not those of EMQX', async () => {
    const names = 'listeners autoSubscriptions rewrite bridges auth mqttPort memory __proto__ constructor toString';
    const lines = names.split(' ').map((name) => `${name} = 5`);
    const text = ['listener.tcp.a = 127.0.0.1:1883', 'module.subscription.1.topic = a', ...lines].join('\n');
    const result = await imported({ 'emqx.conf': `${text}\n` });
    assert.equal(result.code, 0, result.err);
    assert.deepEqual(
      result.refused.map((one) => one.text),
      lines
    );
    for (const { reason } of result.refused) assert.equal(reason, 'is not the name of a setting of EMQX');
    assert.deepEqual(result.config.listeners, [{ kind: 'tcp', port: 1883, host: '127.0.0.1' }]);
    assert.deepEqual(result.config.autoSubscriptions, [{ topic: 'a' }]);
    await served(result);
  });

  it('lists lines whose values and parts of names are those of an object', async () => {
    const words = ['constructor', '__proto__'];
    const emqx = words.flatMap((word) => [
      `log.level = ${word}`,
      `module.subscription.1.${word} = 1`,
      `listener.ssl.a.${word} = 1`,
      `listener.ssl.a.peer_cert_as_username = ${word}`,
      `zone.${word}.${word} = 1`
    ]);
    const valid = 'listener.tcp.a = 127.0.0.1:1883\nmodule.subscription.1.topic = a\n';
    const ofEmqx = await imported({ 'emqx.conf': `${valid}${emqx.join('\n')}\n` });
    assert.deepEqual(ofEmqx.refused.map(({ text }) => text).sort(), [...emqx].sort());
    assert.deepEqual(Object.keys(ofEmqx.config).sort(), [
      'allow_anonymous',
      'autoSubscriptions',
      'listeners',
      'mqttPort',
      'wsPort'
    ]);
    assert.deepEqual(ofEmqx.config.autoSubscriptions, [{ topic: 'a' }]);

    const mosquitto = words.flatMap((word) => [
      `log_type ${word}`,
      `${word} 1`,
      `persistent_client_expiration ${word}`
    ]);
    const ofMosquitto = await imported({ 'mosquitto.conf': `${mosquitto.join('\n')}\n` });
    assert.deepEqual(
      ofMosquitto.refused.map(({ text }) => text),
      mosquitto
    );
    const tls = `listener 1884\ncertfile c\nkeyfile k\ntls_version constructor\n`;
    assert.deepEqual(listed(await imported({ 'mosquitto.conf': tls })), [
      '4: tls_version constructor: is not tlsv1.1, tlsv1.2 or tlsv1.3'
    ]);
  });

  it('goes on after a file of include_dir that cannot be read', async () => {
    const result = await imported({
      'mosquitto.conf': 'listener 1884 127.0.0.1\ninclude_dir DIR/conf.d\n',
      'conf.d/a.conf/nothing': '',
      'conf.d/b.conf/nothing': '',
      'conf.d/c.conf': 'max_keepalive 60\n'
    });
    assert.equal(result.code, 0, result.err);
    assert.match(
      listed(result).join('\n'),
      /^2: include_dir .*: cannot read .*a\.conf: .*; cannot read .*b\.conf: .*$/
    );
    assert.equal(result.config.maxKeepalive, 60);
  });
});

describe('import of files in parts, and of other files', () => {
  it('reads the files that emqx.conf includes in their place, and lists those that it cannot read', async () => {
    const result = await imported({
      'etc/emqx.conf': `listener.tcp.a = 127.0.0.1:1883   ## comment
zone.external.max_packet_size = 1MB # and another
module.rewrite.rule.1 = x/# ^x/y/(.+)$ z/$1
include "etc/zones.conf"
include parts/*.conf
include none.conf
`,
      'etc/zones.conf': 'include emqx.conf\nzone.external.max_inflight = 7\n',
      'etc/parts/b.conf': 'include {{ platform_etc_dir }}/parts/c.txt\n',
      'etc/parts/a.conf': 'zone.external.max_inflight = 8\n',
      'etc/parts/c.txt': 'node.cookie hidden\n'
    });
    assert.equal(result.code, 0, result.err);
    assert.equal(result.config['zone.external.max_packet_size'], '1MB');
    assert.equal(result.config['zone.external.max_inflight'], 8);
    assert.deepEqual(result.config.rewrite, [{ filter: 'x/#', pattern: '^x/y/(.+)$', target: 'z/$1' }]);
    const shown = result.refused.map(({ file, line, reason }) => `${file.replace(/.*\/etc\//, '')}:${line} ${reason}`);
    assert.match(shown.join('\n'), /^emqx\.conf:6 cannot read none\.conf: .*$/m);
    assert.match(shown.join('\n'), /^zones\.conf:1 .*emqx\.conf includes itself$/m);
    assert.match(shown.join('\n'), /^zones\.conf:2 line 1 sets it again$/m);
    assert.match(shown.join('\n'), /^parts\/c\.txt:1 expected "name = value"$/m);
    assert.equal(shown.length, 4);
  });

  it('writes nothing for a file of EMQX 5, or of no broker that it knows [CONFIG_INVALID]', async () => {
    const files: [name: string, text: string, error: RegExp, ...args: string[]][] = [
      ['emqx.conf', 'node {\n  name = "a"\n}\n', /EMQX 5/],
      ['emqx.conf', 'listeners.tcp.default {\n  bind = 1883\n}\n', /EMQX 5/, '--from', 'emqx'],
      ['some.conf', '\0\u0001\u0002\n', /has no setting of mosquitto\.conf/],
      ['some.yml', 'mqtt:\n  port: 1883\n', /has no setting of mosquitto\.conf/]
    ];
    for (const [name, text, error, ...args] of files) {
      const { code, err, folder } = await imported({ [name]: text }, ...args);
      assert.equal(code, 2, name);
      assert.match(err, error);
      assert.ok(!existsSync(join(folder, 'embermq.json')));
    }
  });
});

describe('the command import', () => {
  it('overwrites no file, and writes neither if one of the two exists', async () => {
    const result = await imported({ 'mosquitto.conf': `${LISTENER}acl_file DIR/acl\n`, acl: 'topic read a\n' });
    const path = join(result.folder, 'mosquitto.conf');
    const out = join(result.folder, 'embermq.json');
    if (process.platform !== 'win32') assert.equal(statSync(out).mode & 0o777, 0o600);
    const run = async () => {
      const shell = testShell();
      const code = await runCommand(['import', path, '--out', out], shell);
      return { code, err: shell.err() };
    };
    const before = readFileSync(out, 'utf8');
    assert.deepEqual(await run(), {
      code: 1,
      err: `embermq: ${out} exists, and is not overwritten: name another file with --out\n`
    });
    assert.equal(readFileSync(out, 'utf8'), before);
    rmSync(out);
    assert.match((await run()).err, /embermq\.acl\.json exists/);
    assert.ok(!existsSync(out));
  });

  it('names the file that it cannot write', async () => {
    const { folder } = await imported({ 'mosquitto.conf': LISTENER });
    const shell = testShell();
    const out = join(folder, 'missing', 'embermq.json');
    assert.equal(await runCommand(['import', join(folder, 'mosquitto.conf'), '--out', out], shell), 1);
    assert.ok(shell.err().startsWith(`embermq: cannot write ${out}: ENOENT`));
  });

  it('recognises the broker by the name or the content of the file, unless --from names it', async () => {
    const mosquitto = await imported({ 'broker.conf': 'listener 1883 127.0.0.1\nallow_anonymous true\n' });
    assert.equal(mosquitto.config.allowAnonymous, true);
    const emqx = await imported({ 'broker.conf': 'node.name = a@b\nallow_anonymous = true\n' });
    assert.equal(emqx.config['node.name'], 'a@b');
    const forced = await imported({ 'emqx.conf': 'listener 1883 127.0.0.1\n' }, '--from', 'mosquitto');
    assert.equal((forced.config.listeners as object[]).length, 1);
  });

  it('prints each line with its reason, and what was added', async () => {
    const folder = join(home, `${folders++}`);
    mkdirSync(folder);
    const path = join(folder, 'mosquitto.conf');
    writeFileSync(path, 'listener 1883 127.0.0.1\nallow_anonymous true\nlog_dest syslog\n');
    const shell = testShell();
    assert.equal(await runCommand(['import', path, '--out', join(folder, 'e.json')], shell), 0);
    assert.equal(
      shell.out(),
      `${path}:3: log_dest syslog\n  not taken over: has no effect: the log goes to standard error\nadded: sessionExpiryInterval: "infinity": mosquitto keeps sessions of MQTT 3 for ever; the default here is two hours\n`
    );
    const end = shell.err();
    assert.match(end, /e\.json was written; 1 line was not taken over\. Check it: embermq doctor --config /);
    assert.match(end, /Relative paths in it apply in this folder/);
  });

  it('refuses a missing file, two files, and a broker that it does not know', async () => {
    const shell = testShell();
    assert.equal(await runCommand(['import', join(home, 'none.conf')], shell), 1);
    assert.match(shell.err(), /cannot read .*none\.conf/);
    assert.equal(await runCommand(['import'], shell), 2);
    assert.equal(await runCommand(['import', 'a', 'b'], shell), 2);
    assert.equal(await runCommand(['import', 'a', '--from', 'hivemq'], shell), 2);
  });
});
