import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CHECKS, examine } from '../../adapters/cli/doctor/doctor.ts';
import { type Machine, thisMachine } from '../../adapters/cli/doctor/machine.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { FORMAT_KEY, IMPORT_MARK } from '../../lib/store/commits.ts';
import { FORMAT, Kind } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';
import { fillFolder, stateOf } from '../store/filled-folder.ts';
import { change } from '../store/filled-store.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { freePort } from '../support/free-ports.ts';
import { joinedProgram } from '../support/programs.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-doctor-'));
let folders = 0;
const newPath = (name = '') => join(home, `${folders++}${name}`);
const withProc = { skip: !existsSync('/proc/self') && 'no /proc here' };
const withModes = { skip: process.platform === 'win32' && 'no file modes here' };

/** Flags with which no port has to be free. */
const NO_PORTS = ['--mqtt-port', '0', '--ws-port', 'off'];

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => {
  certificates[Symbol.dispose]();
  rmSync(home, { recursive: true, force: true });
});

interface Line {
  readonly id: string;
  readonly level: 'ok' | 'warning' | 'fault';
  readonly text: string;
  readonly remedy: string | null;
}

/** A machine in which all is well. */
const SOUND: Partial<Machine> = {
  platform: 'linux',
  nodeVersion: '24.11.0',
  isClockSynchronized: async () => true,
  connectionFailure: async () => undefined,
  fileSystem: async () => ({ type: 0xef53, bytes: 2e11, freeBytes: 1e11, files: 1e7, freeFiles: 1e6 }),
  memoryBytes: 8e9,
  heapBytes: 2e9
};

/** Run the doctor in this process. @returns the exit code, all lines, and those that are not ok */
async function examined(args: readonly string[], { machine = {}, files = {}, env = {} }: Given = {}) {
  const shell = testShell();
  Object.assign(shell.env, { EMBERMQ_DATA_DIR: newPath() }, env); // ./data may be that of `npm start`
  for (const [path, text] of Object.entries(files)) shell.files.set(path, text);
  const code = await examine(['--json', ...NO_PORTS, ...args], shell, withParts({ ...SOUND, ...machine }));
  const lines = JSON.parse(shell.out()) as Line[];
  return { code, lines, bad: lines.filter(({ level }) => level !== 'ok') };
}

interface Given {
  readonly machine?: Partial<Machine>;
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

function withParts(parts: Partial<Machine>): Machine {
  return Object.create(thisMachine, Object.getOwnPropertyDescriptors(parts)) as Machine;
}

/** A certificate that is valid for 99 days, and its key, which only its owner can read. */
function lasting(): { readonly cert: string; readonly key: string } {
  const [cert, key] = [newPath('.crt'), newPath('.key')];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '99', '-subj', '/CN=localhost'];
  execFileSync('openssl', [...request, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  chmodSync(key, 0o600);
  return { cert, key };
}

const filled = () => fillFolder(newPath());

/** The contents of the files of a folder. */
function filesIn(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')]));
}

/** The one finding that a planted fault causes. */
async function only(
  id: string,
  level: Line['level'],
  pattern: RegExp,
  remedy: RegExp,
  ...given: Parameters<typeof examined>
) {
  const { code, bad } = await examined(...given);
  assert.deepEqual(
    bad.map((line) => [line.id, line.level]),
    [[id, level]],
    JSON.stringify(bad)
  );
  assert.match(bad[0].text, pattern);
  assert.match(bad[0].remedy ?? '', remedy);
  assert.equal(code, level === 'fault' ? 2 : 1);
}

describe('doctor with a sound broker', () => {
  it('exits with 0 for a sound folder, and changes nothing in it', async () => {
    const folder = await filled();
    const state = stateOf(folder);
    const { code, bad, lines } = await examined([folder]);
    assert.deepEqual(bad, []);
    assert.equal(code, 0);
    assert.ok(lines.length >= 15);
    for (const line of lines) assert.deepEqual(Object.keys(line), ['id', 'level', 'text', 'remedy']);
    assert.deepEqual(stateOf(folder), state);
  });

  it('exits with 0 before the first start, and creates no folder', async () => {
    const { code, lines } = await examined(['--data-dir', newPath()]);
    assert.equal(code, 0);
    assert.match(lines.find(({ id }) => id === 'folder')?.text ?? '', /does not exist yet; serve creates it/);
    assert.ok(!existsSync(join(home, `${folders - 1}`)));
  });

  it('prints a line for each check, remedies, and a count, unless JSON is asked for', async () => {
    const shell = testShell();
    assert.equal(await examine([...NO_PORTS, newPath()], shell, withParts(SOUND)), 2);
    const out = shell.out();
    assert.match(out, /^ok {7}config {10}flags and environment are valid; there is no config file$/m);
    assert.match(out, /^fault {4}folder {10}.* does not exist\n {25}remedy: Name the folder of serve --data-dir/m);
    assert.match(out, /\n1 fault, 0 warnings\n$/);
  });

  it(
    'finds a running broker by its process and its health page, and changes nothing in its folder',
    withProc,
    async () => {
      const folder = await filled();
      chmodSync(folder, 0o700);
      const broker = new CommandProcess([
        'serve',
        '--data-dir',
        folder,
        ...NO_PORTS,
        ...['--http-port', '0', '--app', 'tools:a-long-enough-secret']
      ]);
      try {
        const { pid, mqtt, http } = await broker.ready();
        const state = filesIn(folder);
        const ports = ['--mqtt-port', `${mqtt}`, '--http-port', `${http}`];
        const { code, bad, lines } = await examined([folder, ...ports]);
        assert.deepEqual(bad, []);
        assert.equal(code, 0);
        const now = filesIn(folder);
        assert.deepEqual(Object.keys(now), Object.keys(state));
        // the broker may write to its log meanwhile
        for (const [name, content] of Object.entries(state))
          if (name.endsWith('.log')) assert.ok(now[name].startsWith(content), name);
          else assert.equal(now[name], content, name);
        const textsOf = (wanted: string) => lines.filter(({ id }) => id === wanted).map(({ text }) => text);
        assert.deepEqual(textsOf('running'), [
          `process ${pid} has the folder open, and is ready (http://127.0.0.1:${http}/readyz)`
        ]);
        assert.deepEqual(textsOf('ports'), [
          `127.0.0.1:${mqtt} (mqtt) is open: the broker runs (process ${pid})`,
          `127.0.0.1:${http} (http) is open: the broker runs (process ${pid})`
        ]);
        assert.match(textsOf('store-format')[0], new RegExp(`^format ${FORMAT}, `));
        // the broker still has its lock and works
        assert.equal((await fetch(`http://127.0.0.1:${http}/readyz`)).status, 200);
        const elsewhere = await examined([folder, '--mqtt-port', `${await freePort()}`]);
        assert.deepEqual(
          elsewhere.bad.map(({ id, level }) => [id, level]),
          [
            ['running', 'warning'],
            ['ports', 'warning']
          ]
        );
        assert.match(elsewhere.bad[0].text, /does not answer on the ports of this configuration/);
        assert.match(elsewhere.bad[1].text, /is free, although the broker runs/);
      } finally {
        broker.child.kill();
      }
      assert.equal(await broker.end(), 0);
      assert.equal((await examined([folder])).code, 0);
    }
  );
});

describe('doctor with a data folder that has a fault', () => {
  it('reports a folder that does not exist, or is a file', async () => {
    await only('folder', 'fault', /does not exist$/, /Name the folder of serve --data-dir/, [newPath()]);
    const file = newPath();
    writeFileSync(file, '');
    await only('folder', 'fault', /is not a folder/, /Name another folder/, [file]);
  });

  it('reports a folder without a store', async () => {
    const folder = newPath();
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, 'holiday.jpg'), '');
    await only('folder', 'warning', /has files, but no store/, /--data-dir/, [folder]);
  });

  it('reports a folder that other users can use', withModes, async () => {
    const folder = await filled();
    chmodSync(folder, 0o755);
    await only('folder-mode', 'fault', /\(mode 0755\)/, /^chmod 700 /, [folder]);
    chmodSync(folder, 0o750);
    await only('folder-mode', 'warning', /\(mode 0750\)/, /^chmod 700 /, [folder]);
  });

  it('reports a folder of another user', async () => {
    const folder = await filled();
    const machine = { uid: statSync(folder).uid + 1, userName: 'stranger' };
    await only('folder-owner', 'warning', /this is stranger/, /chown -R USER DIR/, [folder], { machine });
  });

  it('reports first secrets that were left behind, and those that others can read', withModes, async () => {
    const folder = await filled();
    writeFileSync(join(folder, 'first-application'), 'app:secret\n', { mode: 0o600 });
    await only('first-secrets', 'warning', /first-application still has a secret/, /delete it: rm /, [folder]);
    chmodSync(join(folder, 'first-application'), 0o644);
    await only('first-secrets', 'fault', /others can read \(mode 0644\)/, /delete it: rm /, [folder]);
  });

  it('reports a damaged and a missing file without changing them', async () => {
    const folder = await filled();
    const [log] = readdirSync(folder).filter((name) => /^\d+\.log$/.test(name));
    truncateSync(join(folder, log), statSync(join(folder, log)).size - 9);
    const state = stateOf(folder);
    await only('store-files', 'fault', /is damaged: it has \d+ bytes, but had/, /store check .* --repair/, [folder]);
    rmSync(join(folder, 'CURRENT'));
    await only('store-files', 'fault', /CURRENT is damaged: it is missing/, /Restore a backup/, [folder]);
    assert.equal(stateOf(folder).length, state.length - 1);
  });

  it('reports a store of a later release, of an earlier one, and an interrupted import', async () => {
    const formatted = async (format: number, definitions: number) => {
      const folder = await filled();
      const draft = new Draft();
      draft.key(Kind.format).value().u8(format).f64(1).u8(definitions).put();
      const [key, value] = [draft.batch.keys[0], draft.batch.values[0] as Buffer];
      await change(levelStore(folder), (batch) => batch.put(key, value));
      return folder;
    };
    await only('store-format', 'fault', /this release reads formats up to/, /Use the release that/, [
      await formatted(9, 3)
    ]);
    await only(
      'store-format',
      'warning',
      /written by embermq 0.2 or earlier: the next start upgrades it/,
      /copy the folder/,
      [await formatted(FORMAT - 1, 0)]
    );
    const damaged = await filled();
    await change(levelStore(damaged), (batch) => batch.put(FORMAT_KEY, Buffer.of(1, 2, 3)));
    await only('store-format', 'fault', /no format record, or one that cannot be read/, /backup/, [damaged]);
    const folder = await filled();
    await change(levelStore(folder), (batch) => batch.put(IMPORT_MARK.key, IMPORT_MARK.value));
    await only('store-format', 'fault', /import into the store was interrupted/, /embermq store import /, [folder]);
  });

  it('reports leftovers of interrupted writes and of a repair', async () => {
    const folder = await filled();
    writeFileSync(join(folder, '999998.dbtmp'), '');
    await only('leftovers', 'warning', /999998\.dbtmp/, /The next start deletes/, [folder]);
    rmSync(join(folder, '999998.dbtmp'));
    mkdirSync(join(folder, 'lost'));
    writeFileSync(join(folder, 'lost', '000003.ldb'), '');
    await only('leftovers', 'warning', /a repair has moved 1 files/, /rm -r /, [folder]);
  });

  it('reports a disk without free bytes or inodes, and a small one', async () => {
    const folder = await filled();
    const disk = { type: 0xef53, bytes: 1e11, freeBytes: 5e10, files: 1e6, freeFiles: 5e5 };
    const on = (part: Partial<typeof disk>) => ({ machine: { fileSystem: async () => ({ ...disk, ...part }) } });
    await only('disk-space', 'fault', /the disk is full/, /Free some disk space/, [folder], on({ freeBytes: 0 }));
    await only('disk-space', 'warning', /only 95 MB of 93 GB are free/, /Free some/, [folder], on({ freeBytes: 1e8 }));
    await only(
      'disk-space',
      'warning',
      /has only 19 MB/,
      /64 MB or more/,
      [folder],
      on({ bytes: 2e7, freeBytes: 1e7 })
    );
    await only('disk-space', 'fault', /only 0 more files/, /Delete files/, [folder], on({ freeFiles: 0 }));
    assert.equal(
      (await examined([folder], on({ files: 0, freeFiles: 0 }))).code,
      0,
      'btrfs has no fixed number of inodes'
    );
    const { code } = await examined([folder], on({ bytes: 0, freeBytes: 0 }));
    assert.equal(code, 0, 'a file system of the kernel has no size');
  });

  it('reports a file system of another machine, of another program, or in memory', async () => {
    const folder = await filled();
    const on = (type: number) => ({
      machine: { fileSystem: async () => ({ type, bytes: 1e11, freeBytes: 5e10, files: 0, freeFiles: 0 }) }
    });
    await only('file-system', 'fault', /is on NFS/, /local disk/, [folder], on(0x6969));
    await only('file-system', 'warning', /is on FUSE/, /local disk/, [folder], on(0x65735546));
    await only('file-system', 'warning', /is on tmpfs/, /volume of the container/, [folder], on(0x01021994));
  });
});

describe('doctor with a machine that has a fault', () => {
  it('reports versions of Node.js that are too old or without support', async () => {
    const at = (nodeVersion: string, day: string) => ({ machine: { nodeVersion, now: () => Date.parse(day) } });
    await only('node', 'fault', /20\.18\.3 is older than 20\.19/, /Install a line/, [], at('20.18.3', '2026-01-01'));
    await only(
      'node',
      'warning',
      /no security updates since 2026-04-30/,
      /22, 24 or 26/,
      [],
      at('20.19.0', '2026-05-01')
    );
    assert.equal((await examined([], at('20.19.0', '2026-04-01'))).code, 0);
    assert.equal((await examined([], at('30.0.0', '2029-01-01'))).code, 0);
  });

  it('reports a clock that is behind the store, far ahead of it, or not synchronised', async () => {
    const folder = await filled();
    const newest = statSync(join(folder, 'CURRENT')).mtimeMs;
    const at = (ms: number) => ({ machine: { now: () => newest + ms } });
    await only('clock', 'fault', /but the store was written at/, /Set the clock/, [folder], at(-3_600_000));
    await only('clock', 'warning', /was last written at/, /Set the clock/, [folder], at(400 * 86_400_000));
    const machine = { isClockSynchronized: async () => false };
    await only('clock-sync', 'warning', /not synchronised/, /timedatectl set-ntp true/, [folder], { machine });
    // a file of the future
    utimesSync(join(folder, 'CURRENT'), Date.now() / 1000 + 86_400, Date.now() / 1000 + 86_400);
    await only('clock', 'fault', /the clock says/, /Set the clock/, [folder]);
  });

  it('reports a time zone that does not exist', async () => {
    await only('time-zone', 'warning', /"Mars\/Phobos"/, /tzdata/, [], { env: { TZ: 'Mars/Phobos' } });
    for (const TZ of ['Europe/Berlin', ':UTC', 'CET-1CEST', ''])
      assert.equal((await examined([], { env: { TZ } })).code, 0, TZ);
  });

  it('reports too few open files for the connections', async () => {
    const allowed = (limit: string) => ({
      machine: {
        readText: async () => `Max open files            ${limit}                 ${limit}                 files\n`
      }
    });
    await only(
      'open-files',
      'warning',
      /^the limit of open files of this shell is 1024: enough for 896 clients only$/,
      /LimitNOFILE/,
      [],
      allowed('1024')
    );
    const wanted = ['--max-connections', '50000'];
    await only(
      'open-files',
      'warning',
      /enough for 9872 of the 50000 connections/,
      /ulimit -n/,
      wanted,
      allowed('10000')
    );
    assert.equal((await examined(wanted, allowed('65536'))).code, 0);
    assert.equal((await examined(wanted, allowed('unlimited'))).code, 0);
  });

  it('reports a memory limit below the watermark or the heap, and a share of a core', async () => {
    const folder: string[] = [];
    const memory = (memoryBytes: number, heapBytes: number) => ({ machine: { memoryBytes, heapBytes } });
    await only(
      'memory',
      'fault',
      /may use 512 MB of memory, and memoryHighWatermark is/,
      /at most 410 MB/,
      folder,
      memory(2 ** 29, 2e9)
    );
    await only('memory', 'fault', /and memoryHighWatermark is 9\.8 GB/, /or allow more memory/, [
      '--memory-high-watermark',
      '10000MB'
    ]);
    await only(
      'memory',
      'warning',
      /heap of Node.js may grow/,
      /--max-old-space-size=384/,
      folder,
      memory(2 ** 29, 2 ** 29 + 1e6)
    );
    await only('memory', 'warning', /use 128 MB or more/, /MemoryMax/, folder, memory(2 ** 26, 2 ** 25));
    const readText = async (path: string) => (path === '/sys/fs/cgroup/cpu.max' ? '50000 100000\n' : undefined);
    await only('cores', 'warning', /0\.5 of a core/, /--cpus of Docker/, folder, { machine: { readText } });
  });

  it('reads the limits of the process as the system has set them', { skip: process.platform !== 'linux' }, () => {
    const command = `ulimit -n 256 && exec "$0" "$@"`;
    const args = [
      process.execPath,
      joinedProgram('adapters/cli/main.ts'),
      'doctor',
      '--json',
      ...NO_PORTS,
      '--data-dir',
      newPath()
    ];
    const env = {
      ...process.env,
      EMBERMQ_HTTP_PORT: 'off',
      EMBERMQ_HTTP_EARLIER_PORT: 'off',
      EMBERMQ_RULES_PORT: 'off',
      EMBERMQ_DASHBOARD_PORT: 'off'
    };
    const { status, stdout, stderr } = spawnSync('sh', ['-c', command, ...args], { env, encoding: 'utf8' });
    assert.equal(status, 1, stderr);
    const found = (JSON.parse(stdout) as Line[]).find(({ id }) => id === 'open-files');
    assert.match(found?.text ?? '', /^the limit of open files of this shell is 256: enough for 128 clients only$/);
  });
});

describe('doctor with a configuration that has a fault', () => {
  it('reports all errors of a config file at once, and examines the rest', async () => {
    const files = {
      'e.json': JSON.stringify({
        maxInflihgt: 7,
        mqttPort: 70_000,
        'zone.external.max_packet_size': '1 parsec',
        wsPort: 'off',
        dataDir: newPath(),
        listener: 1
      })
    };
    const { code, bad, lines } = await examined(['--config', 'e.json'], { files, env: { EMBERMQ_NONSENSE: '1' } });
    const texts = bad.map(({ text }) => text).join('\n');
    assert.deepEqual(new Set(bad.map(({ id }) => id)), new Set(['config']));
    for (const part of [
      /did you mean "maxInflight"/,
      /e\.json: mqttPort/,
      /max_?[pP]acket_?[sS]ize/,
      /"listener"/,
      /EMBERMQ_NONSENSE/
    ])
      assert.match(texts, part);
    assert.equal(bad.length, 5, texts);
    assert.equal(code, 2);
    assert.ok(lines.some(({ id, text }) => id === 'folder' && text.includes('serve creates it')));
  });

  it('reports a config file that is missing, or not JSON, and examines the rest', async () => {
    await only('config', 'fault', /cannot read .*: ENOENT/, /Correct the option/, ['--config', newPath()]);
    const { bad, lines } = await examined(['--config', 'e.json'], { files: { 'e.json': '{ "mqttPort": ' } });
    assert.match(bad[0].text, /^e\.json: /);
    assert.ok(lines.length > 10);
  });

  it('examines the folder that is named, also after more errors than it reads', async () => {
    const folder = await filled();
    const files = {
      'e.json': JSON.stringify(Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`no${at}`, 1])))
    };
    for (const given of [{ args: ['--data-dir', folder] }, { args: [], env: { EMBERMQ_DATA_DIR: folder } }]) {
      const { lines } = await examined(['--config', 'e.json', ...given.args], { files, env: given.env ?? {} });
      assert.ok(lines.some(({ id, level }) => id === 'store-format' && level === 'ok'));
    }
  });

  it('reports a config file with secrets that everybody can read', withModes, async () => {
    const path = newPath('.json');
    writeFileSync(path, JSON.stringify({ app: 'tools:a-long-enough-secret' }), { mode: 0o644 });
    await only('config-secrets', 'fault', /has the secret app, .*\(mode 0644\)/, /^chmod 600 /, ['--config', path]);
    writeFileSync(path, JSON.stringify({ cert: 'server.crt', key: '-----BEGIN PRIVATE KEY-----' }));
    const { bad: withKey } = await examined(['--config', path]);
    assert.match(withKey.find(({ id }) => id === 'config-secrets')?.text ?? '', /the secret key,/);
    writeFileSync(path, JSON.stringify({ key: 'server.key', cert: 'server.crt' })); // paths
    const { bad: withPaths } = await examined(['--config', path]);
    assert.equal(
      withPaths.find(({ id }) => id === 'config-secrets'),
      undefined
    );
    writeFileSync(path, JSON.stringify({ auth: [{ kind: 'jwt', secret: { fromEnv: 'KEY' } }] }));
    const { bad } = await examined(['--config', path], { env: { KEY: 'k'.repeat(64) } });
    assert.deepEqual(bad, []);
  });

  it('reports a config file that cannot be read beside an error of the environment', async () => {
    for (const text of ['{"mqttPort": 18', 'null']) {
      const given = { files: { 'h.json': text }, env: { EMBERMQ_NONSENSE: '1' } };
      const { bad } = await examined(['--config', 'h.json', '--data-dir', newPath()], given);
      assert.deepEqual(
        bad.map(({ id, level }) => [id, level]),
        [
          ['config', 'fault'],
          ['config', 'fault']
        ]
      );
      assert.match(bad.map((one) => one.text).join('\n'), /EMBERMQ_NONSENSE.*h\.json/s);
    }
  });

  it('reports a Unix socket in a folder that does not exist', withModes, async () => {
    const files = { 'u.json': JSON.stringify({ listeners: [{ kind: 'unix', path: join(newPath(), 's') }] }) };
    const args = ['--config', 'u.json', '--data-dir', newPath()];
    await only('sockets', 'fault', /its folder does not exist/, /Create the folder/, args, { files });
  });

  it('reports a port that two listeners use', async () => {
    const port = await freePort();
    const both = ['--mqtt-port', `${port}`, '--wss-port', 'off', '--http-port', `${port}`, '--data-dir', newPath()];
    await only('ports', 'fault', new RegExp(`:${port} \\(http\\) is also the port of mqtt`), /--http-port/, both);
    const listeners = [
      { kind: 'tcp', port, host: '0.0.0.0', name: 'all' },
      { kind: 'ws', port, name: 'own' }
    ];
    const files = { 'p.json': JSON.stringify({ listeners, allowAnonymous: false }) };
    const { bad } = await examined(['--config', 'p.json', '--data-dir', newPath()], { files });
    const texts = bad.filter(({ id }) => id === 'ports').map(({ text }) => text);
    assert.deepEqual(texts, [`127.0.0.1:${port} (own) is also the port of all`]);
  });

  it('does not blame a listener on another address for a port in use', withProc, async (t) => {
    const server = createServer().listen(0, '127.0.0.2');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const listeners = [
      { kind: 'tcp', port, host: '127.0.0.1', name: 'one' },
      { kind: 'ws', port, host: '127.0.0.2', name: 'other' },
      { kind: 'ws', port, host: '0.0.0.0', name: 'same' }
    ];
    const files = { 'p.json': JSON.stringify({ listeners, allowAnonymous: false }) };
    const { bad } = await examined(['--config', 'p.json'], { files });
    const [other, same] = bad.filter(({ id }) => id === 'ports').map(({ text }) => text);
    assert.match(other, /^127\.0\.0\.2:\d+ \(other\) is in use by process/);
    assert.match(same, /^0\.0\.0\.0:\d+ \(same\) is also the port of one$/);
  });

  it('finds what serve finds when it creates bridges, webhooks, listeners and interfaces', withModes, async () => {
    const { cert: certFile, key: keyFile } = lasting();
    const secure = { kind: 'tls', port: 0, certFile, keyFile };
    const bridge = { name: 'a', url: 'mqtts://h.example', out: [{ filter: '#' }] };
    const faults: [content: object, id: string, text: RegExp][] = [
      [{ bridges: [{ ...bridge, ca: 'nope' }] }, 'config', /bridges\[0\]: ca: TLS cannot use it/],
      [{ bridges: [bridge, bridge] }, 'config', /bridges\[1\]\.name: expected a name that no other bridge has/],
      [{ webhooks: [{ url: 'https://h.example/', ca: 'nope' }] }, 'config', /webhooks\[0\]: ca: TLS cannot use it/],
      [{ management: { trustedProxies: 'nope' } }, 'config', /trustedProxies/],
      [{ streamsApi: { pageSize: 5 } }, 'config', /pageSize/],
      [{ listeners: [{ ...secure, ciphers: 'BOGUS' }] }, 'certificates', /no cipher match/],
      [{ listeners: [{ ...secure, caFile: newPath('.pem') }] }, 'certificates', /no such file or directory, open/],
      [{ listeners: [{ ...secure, pskFile: newPath() }] }, 'certificates', /no such file or directory, open/],
      [
        {
          listeners: [
            { kind: 'tcp', port: 0, name: 'one' },
            { kind: 'ws', port: 0, name: 'one' }
          ]
        },
        'config',
        /"one"/
      ]
    ];
    for (const [content, id, text] of faults) {
      const files = { 'c.json': JSON.stringify(content) };
      await only(id, 'fault', text, /Correct the option/, ['--config', 'c.json', '--data-dir', newPath()], { files });
    }
    const both = {
      listeners: [{ ...secure, caFile: 'no.pem' }],
      webhooks: [{ url: 'https://h.example/', ca: 'nope' }]
    };
    const { bad } = await examined(['--config', 'c.json'], { files: { 'c.json': JSON.stringify(both) } });
    assert.deepEqual(
      bad.map(({ id }) => id),
      ['config', 'certificates']
    );
  });

  it('recognises secrets by names and in URLs, and no others', withModes, async () => {
    const path = newPath('.json');
    const secretOf = async (content: object) => {
      writeFileSync(path, JSON.stringify(content), { mode: 0o644 });
      const { lines } = await examined(['--config', path]);
      const { text = '' } = lines.find(({ id }) => id === 'config-secrets') ?? {};
      return /has the secret (.*), and every/.exec(text)?.[1];
    };
    const bridged = (url: string) => ({ bridges: [{ name: 'a', url, out: [{ filter: '#' }] }] });
    assert.equal(await secretOf(bridged('mqtt://ann:hidden@h.example')), 'bridges.0.url');
    assert.equal(await secretOf(bridged('mqtt://h.example:1883')), undefined);
    const hook = (url: string) => ({ webhooks: [{ url }] });
    assert.equal(await secretOf(hook('http://h.example/x?api_key=hidden')), 'webhooks.0.url');
    assert.equal(await secretOf(hook('http://h.example/x?id=7&n=a@b')), undefined);
    const sources = (connection: unknown) => ({ auth: [{ kind: 'redis', connection }] });
    assert.equal(await secretOf(sources('redis://ann:hidden@h')), 'auth.0.connection');
    assert.equal(await secretOf({ maxConnections: '100', bypassAuthPlugins: 'true' }), undefined);
  });

  it('waits for no pipe that stands in place of a file', { ...withModes, timeout: 10_000 }, async () => {
    const pipe = newPath();
    execFileSync('mkfifo', [pipe]);
    await only('access-files', 'fault', /it is a pipe/, /Correct the file/, ['--password-file', pipe]);
    const tls = (cert: string, key: string) => ['--cert', cert, '--key', key, '--mqtts-port', '0'];
    const { server } = certificates;
    const piped = async (...args: Parameters<typeof tls>) =>
      (await examined(tls(...args))).bad.map(({ text }) => text).join('\n');
    assert.match(await piped(pipe, server.keyFile), /it is a pipe/);
    assert.match(await piped(server.certFile, pipe), /it is a pipe/);
  });

  it('names a package that is missing', async () => {
    const shell = testShell();
    shell.files.set(
      'e.json',
      JSON.stringify({
        auth: [
          { kind: 'postgresql', connection: { host: 'db' } },
          { kind: 'jwt', secret: 'k'.repeat(64) }
        ]
      })
    );
    shell.env.EMBERMQ_DATA_DIR = newPath();
    const importPackage = () => Promise.reject(new Error('not here'));
    const args = ['--json', ...NO_PORTS, '--host', '0.0.0.0', '--config', 'e.json'];
    const code = await examine(args, Object.assign(shell, { importPackage }), withParts(SOUND));
    const bad = (JSON.parse(shell.out()) as Line[]).filter(({ level }) => level === 'fault');
    assert.deepEqual(bad, [
      {
        id: 'packages',
        level: 'fault',
        text: 'a source of the kind "postgresql" needs the package pg: npm install pg',
        remedy: 'npm install pg'
      },
      {
        id: 'packages',
        level: 'fault',
        text: '"auth" of the config file needs the package jose, which is missing',
        remedy: 'npm install jose'
      }
    ]);
    assert.equal(code, 2);
  });

  it('reports files of users and of rules that are missing, not valid, or not protected', withModes, async () => {
    const users = newPath();
    await only('access-files', 'fault', /ENOENT/, /Correct the file/, ['--password-file', users]);
    writeFileSync(users, 'ann\n', { mode: 0o600 });
    await only('access-files', 'fault', /line 1 is not "name:HASH"/, /embermq passwd/, ['--password-file', users]);
    writeFileSync(users, 'ann:$7$101$c2FsdA==$aGFzaA==\n');
    chmodSync(users, 0o644);
    await only('access-files', 'warning', /every user of this machine can read/, /^chmod 600 /, [
      '--password-file',
      users
    ]);
    const rules = newPath();
    writeFileSync(rules, '{permit, all}.\n');
    await only('access-files', 'fault', /permit/, /Correct the file/, ['--acl-file', rules]);
  });

  it('reports a port that another program has, and an address of another machine', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await only(
      'ports',
      'fault',
      new RegExp(`^127\\.0\\.0\\.1:${port} \\(mqtt\\) is in use by `),
      /another port \(--mqtt-port\)/,
      [...['--mqtt-port', `${port}`]]
    );
    if (existsSync('/proc/self')) {
      const { bad } = await examined(['--mqtt-port', `${port}`]);
      assert.match(bad[0].text, new RegExp(`in use by process ${process.pid} \\(.*node`));
    }
    const other = ['--http-host', '192.0.2.1', '--http-port', `${await freePort()}`];
    const found = (await examined(other)).bad.find(({ id }) => id === 'ports');
    assert.match(found?.text ?? '', /^192\.0\.2\.1:\d+ \(http\) cannot be bound: EADDRNOTAVAIL/);
    assert.match(found?.remedy ?? '', /Use an address of this machine/);
  });

  it('reports listeners that other machines can reach', async () => {
    const open = ['--host', '0.0.0.0'];
    const { code, bad } = await examined(open);
    assert.equal(code, 2);
    assert.deepEqual(
      bad.map(({ id, level }) => [id, level]),
      [
        ['clear-text', 'warning'],
        ['exposure', 'fault']
      ]
    );
    assert.match(bad[1].remedy ?? '', /require credentials/);
    const allowed = await examined([...open, '--allow-anonymous']);
    assert.match(
      allowed.bad.find(({ id }) => id === 'exposure')?.text ?? '',
      /anyone can connect .* allowAnonymous is on/
    );
    assert.equal(allowed.code, 1);
    const files = { 'e.json': JSON.stringify({ management: { credentials: 'none' } }) };
    const exposed = ['--config', 'e.json', '--http-port', '0', '--http-host', '0.0.0.0'];
    assert.match(
      (await examined(exposed, { files })).bad.find(({ id }) => id === 'exposure')?.text ?? '',
      /could control the broker/
    );
  });

  it('reports secrets that everybody tries', async () => {
    await only('credentials', 'fault', /one that everybody tries first/, /openssl rand/, ['--app', 'admin:public']);
    await only('credentials', 'warning', /is short/, /openssl rand/, ['--app', 'admin:x8Ts4']);
  });

  it(
    'reports a certificate that expires, has expired or has another key, and a key that others can read',
    withModes,
    async () => {
      const { server, renewed } = certificates;
      const args = (certFile: string, keyFile: string) => ['--cert', certFile, '--key', keyFile, '--mqtts-port', '0'];
      const key = newPath('.key');
      writeFileSync(key, server.key, { mode: 0o600 });
      const at = (days: number) => ({ machine: { now: () => Date.now() + days * 86_400_000 } });
      await only('certificates', 'warning', /expires on \d{4}-/, /Renew the certificate/, args(server.certFile, key));
      await only('certificates', 'fault', /has expired on/, /Renew the certificate/, args(server.certFile, key), at(9));
      await only('certificates', 'fault', /is valid only from/, /Check the clock/, args(server.certFile, key), at(-9));
      const { cert, key: ownKey } = lasting();
      assert.equal((await examined(args(cert, ownKey))).code, 0);
      await only('certificates', 'fault', /does not belong to the certificate/, /Correct/, args(cert, lasting().key));
      writeFileSync(key, readFileSync(ownKey));
      assert.equal((await examined(args(cert, key))).code, 0);
      chmodSync(key, 0o644);
      await only('certificates', 'fault', /can read the private key .*\(mode 0644\)/, /^chmod 600 /, args(cert, key));
      chmodSync(key, 0o600);
      writeFileSync(key, renewed.key);
      // a key of another kind, which OpenSSL does not compare with the certificate
      await only('certificates', 'fault', /is not the key of/, /Use the key/, args(cert, key));
      const remedy = /Correct the option of the listener, or its file/;
      await only('certificates', 'fault', /ENOENT/, remedy, args(newPath(), key));
    }
  );

  it('reports servers of the config file that cannot be reached', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const closed = await freePort();
    const content = {
      bridges: [
        { name: 'a', url: `mqtt://127.0.0.1:${port}`, out: [{ filter: 'a' }] },
        { name: 'b', url: { fromEnv: 'UPSTREAM' }, out: [{ filter: 'b' }] }
      ],
      auth: [{ kind: 'http', authenticate: { url: `http://127.0.0.1:${closed}/users` } }]
    };
    try {
      const { code, lines } = await examined(['--config', 'c.json'], {
        files: { 'c.json': JSON.stringify(content) },
        env: { UPSTREAM: `mqtt://127.0.0.1:${closed}` },
        machine: { connectionFailure: thisMachine.connectionFailure }
      });
      assert.deepEqual(
        lines.filter(({ id }) => id === 'servers').map(({ level, text }) => `${level} ${text}`),
        [
          `warning auth[0].authenticate.url: 127.0.0.1:${closed} cannot be reached: ECONNREFUSED`,
          `ok bridges[0].url: 127.0.0.1:${port} accepts connections`,
          `warning bridges[1].url: 127.0.0.1:${closed} cannot be reached: ECONNREFUSED`
        ]
      );
      assert.equal(code, 1);
    } finally {
      server.close();
    }
  });

  it('says that memory alone is lost at a stop, and refuses flags that do not exist', async () => {
    await only('folder', 'warning', /lost when the broker stops/, /--data-dir DIR/, ['--memory']);
    await assert.rejects(examined(['--mqtt-prot', '1']), { code: 'FLAG_UNKNOWN' });
    await assert.rejects(examined(['a', 'b']), { code: 'FLAG_INVALID' });
  });
});

describe('the table of checks', () => {
  it('gives each check an own id, a title and a remedy', () => {
    assert.equal(new Set(CHECKS.map(({ id }) => id)).size, CHECKS.length);
    for (const { id, title, remedy } of CHECKS) {
      assert.match(title, /^[A-Z].*[^.]$/, id);
      assert.ok(remedy !== '' || id === 'version', id);
    }
  });
});
