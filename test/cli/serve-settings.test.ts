import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readServeSettings } from '../../adapters/cli/serve-settings.ts';
import { testShell } from './shell.ts';

/** Settings of a command line, an environment and a config file. */
function read(args: string[], { env = {}, file }: { env?: Record<string, string>; file?: unknown } = {}) {
  const shell = testShell();
  Object.assign(shell.env, env);
  if (file !== undefined) shell.files.set('e.json', typeof file === 'string' ? file : JSON.stringify(file));
  return readServeSettings(file === undefined ? args : ['--config', 'e.json', ...args], shell);
}

describe('options of serve', () => {
  it('opens MQTT on 1883 and WebSocket on 8083 of loopback when nothing is said', async () => {
    const { listeners, broker } = await read([]);
    assert.deepEqual(listeners, [
      { kind: 'tcp', label: 'mqtt', options: { port: 1883, host: '127.0.0.1' } },
      { kind: 'ws', label: 'ws', options: { port: 8083, host: '127.0.0.1' } }
    ]);
    assert.deepEqual(broker, {});
  });

  it('takes 0 for a free port and off for none', async () => {
    const { listeners } = await read(['--mqtt-port', '0', '--ws-port', 'off']);
    assert.deepEqual(
      listeners.map(({ label, options }) => [label, options.port]),
      [['mqtt', 0]]
    );
    await assert.rejects(read(['--mqtt-port', '70000']), {
      message: /^--mqtt-port: expected a port from 0 to 65535, or off, got "70000"/
    });
  });

  it('refuses to run without any listener', async () => {
    await assert.rejects(read(['--mqtt-port', 'off', '--ws-port', 'off']), {
      code: 'OPTION_MISSING',
      message: /^nothing to listen on: /
    });
  });

  it('takes flags over the environment, that over the config file, and every option of the library in each', async () => {
    const file = { max_packet_size: '1KB', maxInflight: 7, mqttPort: 1, node: 'a@file' };
    const env = { EMBERMQ_MAX_INFLIGHT: '8', EMBERMQ_MQTT_PORT: '2', EMBERMQ_NODE: 'a@env' };
    const { broker, listeners } = await read(['--mqtt-port', '3', '--node', 'a@flag'], { env, file });
    assert.deepEqual(broker, { maxPacketSize: '1KB', maxInflight: '8', node: 'a@flag' });
    assert.equal(listeners[0].options.port, 3);
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

  it('refuses what it does not know, with the place and a suggestion', async () => {
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
    await assert.rejects(read(['start']), { code: 'FLAG_INVALID', message: /serve takes no "start"/ });
  });

  it('says where a wrong value stands', async () => {
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

  it('says of options that are functions that they can only be given in code', async () => {
    for (const name of ['hooks', 'clock', 'store', 'memoryUsage'])
      await assert.rejects(read([], { file: { [name]: {} } }), {
        code: 'OPTION_UNKNOWN',
        message: `e.json: "${name}" can only be given in code`
      });
  });

  it('reports a config file that is not there, is no JSON or is no object', async () => {
    await assert.rejects(read(['--config', 'none.json']), { code: 'FILE_UNREADABLE', message: /none\.json.*ENOENT/ });
    await assert.rejects(read([], { file: '{' }), { code: 'CONFIG_INVALID', message: /^e\.json: / });
    await assert.rejects(read([], { file: '[]' }), { code: 'CONFIG_INVALID' });
  });

  it('reads YAML, and names the package to add where yaml is not installed', async () => {
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

  it('leaves alone what Kubernetes sets for a service of this name', async () => {
    const env = {
      EMBERMQ_PORT: 'tcp://1',
      EMBERMQ_PORT_1883_TCP_ADDR: '1',
      EMBERMQ_SERVICE_HOST: '1',
      EMBERMQ_SERVICE_PORT_MQTT: '1'
    };
    assert.deepEqual((await read([], { env })).broker, {});
  });

  it('refuses to let other machines in unless somebody has said that all may', async () => {
    await assert.rejects(read(['--host', '0.0.0.0']), { code: 'ANONYMOUS_EXPOSED', message: /allowAnonymous: true/ });
    await assert.rejects(read([], { file: { listeners: [{ kind: 'tcp', port: 0, host: '::' }] } }), {
      code: 'ANONYMOUS_EXPOSED'
    });
    await read(['--host', '0.0.0.0', '--allow-anonymous']);
    await read(['--host', '0.0.0.0'], { file: { allowAnonymous: true } });
    await read(['--host', '0.0.0.0'], { env: { EMBERMQ_ALLOW_ANONYMOUS: 'true' } });
    await read(['--host', '0.0.0.0'], { file: { 'zone.external.allow_anonymous': true } });
    const psk = { kind: 'tls', port: 0, host: '::', pskFile: 'keys' };
    await read([], { file: { listeners: [psk] } });
    await assert.rejects(read([], { file: { listeners: [{ ...psk, certFile: 'c' }] } }), {
      code: 'ANONYMOUS_EXPOSED'
    });
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) await read(['--host', host]);
  });

  it('wants certificate and key for TLS, and TLS for certificate and key', async () => {
    await assert.rejects(read(['--mqtts-port', '8883']), {
      code: 'OPTION_MISSING',
      message: /--cert FILE and --key FILE/
    });
    await assert.rejects(read(['--cert', 'c']), { code: 'OPTION_MISSING', message: /--mqtts-port or --wss-port/ });
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
    const options = {
      port: 0,
      host: '0.0.0.0',
      certFile: 'c',
      keyFile: 'k',
      caFile: 'a',
      watchInterval: '1m'
    };
    assert.deepEqual(listeners, [
      { kind: 'tls', label: 'mqtts', options },
      { kind: 'wss', label: 'wss', options }
    ]);
  });

  it('keeps state in ./data unless the flags, the environment or the file say otherwise', async () => {
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

  it('has the files of the folder verified unless a flag, the environment or the file says that they are not to be', async () => {
    const verifyOf = async (...given: Parameters<typeof read>) => (await read(...given)).own.verifyStore;
    assert.equal(await verifyOf([]), true);
    assert.equal(await verifyOf(['--no-verify-store']), false);
    assert.equal(await verifyOf([], { env: { EMBERMQ_VERIFY_STORE: 'off' } }), false);
    assert.equal(await verifyOf([], { file: { verify_store: false } }), false);
    assert.equal(await verifyOf(['--verify-store'], { env: { EMBERMQ_VERIFY_STORE: 'off' } }), true);
    await assert.rejects(read(['--verify-store=maybe']), { code: 'OPTION_INVALID', message: /^--verify-store: / });
  });

  it('refuses --memory together with what says how state is kept, and names both', async () => {
    const message = /^--memory keeps nothing, so --data-dir means nothing: leave one of them out$/;
    await assert.rejects(read(['--memory', '--data-dir', 'a']), { code: 'OPTION_INVALID', message });
    await assert.rejects(read(['--memory', '--durability', 'process']), { message: /so --durability means nothing/ });
    await assert.rejects(read(['--memory', '--no-verify-store']), { message: /so --verify-store means nothing/ });
    await assert.rejects(read([], { env: { EMBERMQ_MEMORY: 'on', EMBERMQ_DURABILITY: 'power' } }), {
      message: /^EMBERMQ_MEMORY keeps nothing, so EMBERMQ_DURABILITY means nothing/
    });
    await assert.rejects(read([], { file: { memory: true, data_dir: 'a' } }), {
      message: /^e\.json: memory keeps nothing, so e\.json: data_dir means nothing/
    });
    const { own } = await read(['--no-memory', '--data-dir', 'a']);
    assert.deepEqual([own.dataDir, own.memory], ['a', false]);
  });

  it('lets the flags say whether state is kept, whatever environment and file say, and the environment over the file', async () => {
    const memoryOf = async (...given: Parameters<typeof read>) => (await read(...given)).own.memory;
    const inMemory = { memory: true };
    const inFolder = { dataDir: 'a', durability: 'power' };
    assert.equal(await memoryOf(['--memory'], { file: inFolder, env: { EMBERMQ_DATA_DIR: 'b' } }), true);
    assert.equal(await memoryOf(['--data-dir', 'c'], { file: inMemory }), false);
    assert.equal(await memoryOf(['--durability', 'power'], { env: { EMBERMQ_MEMORY: 'true' } }), false);
    assert.equal(await memoryOf([], { file: inFolder, env: { EMBERMQ_MEMORY: 'true' } }), true);
    assert.equal(await memoryOf([], { file: inMemory, env: { EMBERMQ_DATA_DIR: 'b' } }), false);
    assert.equal(await memoryOf(['--memory'], { file: inMemory, env: { EMBERMQ_DATA_DIR: 'b' } }), true);
  });

  it('takes more listeners from the config file', async () => {
    const { listeners } = await read(['--mqtt-port', 'off', '--ws-port', 'off'], {
      file: { listeners: [{ kind: 'unix', path: '/run/e.sock' }] }
    });
    assert.deepEqual(listeners, [{ kind: 'unix', options: { path: '/run/e.sock' } }]);
    await assert.rejects(read([], { file: { listeners: [{ kind: 'udp' }] } }), {
      message: /listeners\[0\]\.kind: expected one of tcp/
    });
  });
});
