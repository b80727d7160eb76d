import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import mqtt from 'mqtt';
import { editPasswordFile } from '../../adapters/auth/password-file/index.ts';
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
