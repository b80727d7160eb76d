import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import mqtt from 'mqtt';
import { parse, parseAllDocuments } from 'yaml';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
import { SERVE_OPTIONS } from '../../adapters/cli/serve/options.ts';
import { joinedProgram } from '../support/programs.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const deploy = join(root, 'examples/deploy');
const dockerfile = readFileSync(join(deploy, 'Dockerfile'), 'utf8');
const unit = readFileSync(join(deploy, 'embermq.service'), 'utf8');
/** Free ports, so that the test depends on none in particular. */
const FREE_PORTS = [
  '--mqtt-port',
  '0',
  '--ws-port',
  '0',
  '--http-port',
  '0',
  '--http-earlier-port',
  'off',
  '--rules-port',
  'off',
  '--dashboard-port',
  'off'
];

/** The parts of a manifest that its container is started from. */
interface Manifest {
  readonly kind: string;
  readonly spec: {
    readonly replicas: number;
    readonly ports: readonly { readonly targetPort: string }[];
    readonly selector: object;
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly Container[] };
    };
    readonly volumeClaimTemplates: readonly { readonly spec: { readonly accessModes: readonly string[] } }[];
  };
}

interface Container {
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly mountPath: string }[];
}

/** The arguments of a command without the flags for ports, and with files of the test in the place of files of a container. */
function inFolder(args: readonly string[], places: Readonly<Record<string, string>>): string[] {
  return args
    .filter((arg, at) => !/^--[\w-]+-port$/.test(arg) && !/^--[\w-]+-port$/.test(args[at - 1] ?? ''))
    .map((arg) => places[arg] ?? arg);
}

/** Check whether a program is installed and runs. */
function works(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { timeout: 10_000 }).status === 0;
}

/** The list of an instruction in the exec form, with a given first item. */
function execForm(instruction: string, first: string): string[] {
  const lists = [...dockerfile.matchAll(new RegExp(`^ *${instruction} (\\[.*\\])$`, 'gm'))].map(
    ([, list]) => JSON.parse(list) as string[]
  );
  const found = lists.find(([item]) => item === first);
  assert.ok(found !== undefined, `the Dockerfile has ${instruction} ["${first}" ...]`);
  return found;
}

/** Start the command, check its health, connect a client, and end the command as a supervisor does. */
async function checkService(args: readonly string[], check: (httpPort: number) => Promise<void>): Promise<void> {
  const program = spawn(process.execPath, [joinedProgram('adapters/cli/main.ts'), ...args, ...FREE_PORTS], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore']
  });
  const ended = once(program, 'exit');
  try {
    const [line] = (await Promise.race([once(program.stdout, 'data'), ended])) as [Buffer];
    const ports = JSON.parse(String(line).replace('ready ', '')) as { readonly mqtt: number; readonly http: number };
    await check(ports.http);
    const login = { username: 'door-1', password: 'a secret', protocolVersion: 5, reconnectPeriod: 0 } as const;
    const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${ports.mqtt}`, login);
    const told = new Promise<number | undefined>((resolve) => {
      client.on('disconnect', ({ reasonCode }) => resolve(reasonCode));
    });
    program.kill('SIGTERM');
    assert.equal(await told, 0x8b);
    client.end(true);
    assert.deepEqual(await ended, [0, null]);
  } finally {
    program.kill('SIGKILL');
  }
}

describe('The files for deployment', () => {
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'embermq-deploy-'));
    await editPasswordFile(join(folder, 'passwords'), 'door-1', 'a secret');
  });
  after(() => rmSync(folder, { recursive: true }));

  it('starts the image with a command line that serves, is healthy and drains on SIGTERM', async () => {
    assert.deepEqual(execForm('ENTRYPOINT', 'embermq'), ['embermq']);
    const places: Readonly<Record<string, string>> = {
      '/data': join(folder, 'docker'),
      '/run/secrets/passwords': join(folder, 'passwords')
    };
    const args = execForm('CMD', 'serve').map((arg) => places[arg] ?? arg);
    await checkService(args, async (port) => {
      const [, flag, program] = execForm('CMD', 'node');
      await run(process.execPath, [flag, program.replace('8081', `${port}`)]);
      await assert.rejects(run(process.execPath, [flag, program.replace('8081', '1')]), { code: 1 });
    });
  });

  it('starts the unit with a command line that serves and drains on SIGTERM', async () => {
    const [, line] = /^ExecStart=\/usr\/bin\/env embermq (.*)$/m.exec(unit) ?? [];
    const args = line.split(' ').map((arg) => arg.replace(/^\$\{STATE_DIRECTORY\}$/, () => join(folder, 'systemd')));
    await checkService(args, async (port) => {
      assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200);
    });
  });

  it('starts the container of Kubernetes with a command line that serves, and answers its probes', async () => {
    const text = readFileSync(join(deploy, 'kubernetes.yaml'), 'utf8');
    const [service, set] = parseAllDocuments(text).map((document) => {
      assert.deepEqual(document.errors, []);
      return document.toJS() as Manifest;
    });
    assert.deepEqual([service.kind, set.kind, set.spec.replicas], ['Service', 'StatefulSet', 1]);
    assert.deepEqual(service.spec.selector, set.spec.template.metadata.labels);
    const { terminationGracePeriodSeconds, containers } = set.spec.template.spec;
    const [{ args, ports, volumeMounts, ...container }] = containers;
    const names = ports.map(({ name }) => name);
    assert.deepEqual(
      service.spec.ports.map(({ targetPort }) => targetPort),
      names
    );
    assert.ok(terminationGracePeriodSeconds >= Number(args[args.indexOf('--drain-timeout') + 1]) + 10 + 10);
    assert.deepEqual(
      volumeMounts.filter(({ mountPath }) => !args.some((arg) => arg.startsWith(`${mountPath}/`))),
      []
    );
    assert.deepEqual(set.spec.volumeClaimTemplates[0].spec.accessModes, ['ReadWriteOncePod']);
    const places = {
      '/data/store': join(folder, 'kubernetes'),
      '/etc/embermq/passwords': join(folder, 'passwords'),
      '0.0.0.0': '127.0.0.1'
    };
    await checkService(inFolder(args, places), async (port) => {
      const probes = Object.entries(container).filter(([name]) => name.endsWith('Probe'));
      assert.equal(probes.length, 3);
      for (const [name, { httpGet }] of probes as unknown as [string, { httpGet: { path: string; port: string } }][]) {
        assert.ok(names.includes(httpGet.port), name);
        const answer = await fetch(`http://127.0.0.1:${port}${httpGet.path}`);
        assert.deepEqual([answer.status, (await answer.text()).includes('warn')], [200, false], name);
      }
    });
  });

  it('defines a composition with the image, one broker, and secrets and volumes where its command expects them', () => {
    const { services, volumes, secrets } = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'));
    assert.deepEqual(Object.keys(services), ['broker']);
    const { broker } = services;
    assert.equal(broker.build.context, '.');
    assert.ok(dockerfile.includes(`ARG ${Object.keys(broker.build.args)[0]}=`));
    assert.deepEqual(broker.volumes, [`${Object.keys(volumes)[0]}:/data`]);
    const command = execForm('CMD', 'serve');
    for (const name of broker.secrets) assert.ok(name in secrets && command.includes(`/run/secrets/${name}`), name);
    assert.ok(
      Number.parseInt(broker.stop_grace_period, 10) > Number(command[command.indexOf('--drain-timeout') + 1]) + 10
    );
    const isPublic = (entry: string) => !entry.startsWith('127.0.0.1:');
    assert.deepEqual(broker.ports.filter(isPublic), ['1883:1883', '8083:8083']);
    const options = Object.keys(SERVE_OPTIONS).map((name) => `EMBERMQ_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`);
    for (const name of Object.keys(broker.environment)) assert.ok(options.includes(name), name);
  });

  it('defines an image that does not run as root', () => {
    assert.match(dockerfile, /^USER node$/m);
  });

  const verify = works('systemd-analyze', '--version') ? false : 'systemd-analyze is not installed';
  it('defines a unit that systemd accepts', { skip: verify }, async () => {
    const copy = join(folder, 'embermq.service');
    writeFileSync(copy, unit);
    const { stdout, stderr } = await run('systemd-analyze', ['verify', copy]);
    assert.equal(
      (stdout + stderr)
        .split('\n')
        .filter((line) => line.includes('embermq'))
        .join('\n'),
      ''
    );
  });

  const builder = works('docker', 'buildx', 'version') && works('docker', 'info') ? false : 'no builder of Docker';
  it('defines an image that the builder accepts', { skip: builder }, async () => {
    await run('docker', ['build', '--check', '-f', join(deploy, 'Dockerfile'), deploy]);
  });
});
