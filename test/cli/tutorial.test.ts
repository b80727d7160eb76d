// The tutorials that consist of more than one program of TypeScript: as their pages say, in a folder in which embermq is installed.
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { tutorials } from '../support/example-tables.ts';
import { freePorts } from '../support/free-ports.ts';
import { JOINED, joinedProgram } from '../support/programs.ts';

const root = join(import.meta.dirname, '../..');
const skip = existsSync('/bin/bash') ? false : 'there is no bash';

/** The ports that no tutorial names. */
const OTHER_PORTS = Object.fromEntries(
  ['WS', 'HTTP_EARLIER', 'RULES', 'DASHBOARD'].map((name) => [`EMBERMQ_${name}_PORT`, 'off'])
);

/** A tutorial that has been copied into a folder. */
class Copy {
  readonly folder: string;
  readonly page: string;
  readonly #programs: ReadonlyMap<string, string>;
  readonly #started = new Set<ChildProcess>();

  constructor(tutorial: string) {
    const { page, programs } = tutorials().find(({ name }) => name === tutorial) ?? assert.fail();
    this.page = page;
    this.#programs = programs;
    this.folder = mkdtempSync(join(root, 'dist-test-')); // the other packages are found in node_modules of the root
    mkdirSync(join(this.folder, 'node_modules'));
    symlinkSync(JOINED, join(this.folder, 'node_modules/embermq'), 'junction');
    writeFileSync(join(this.folder, 'package.json'), '{ "type": "module" }');
    mkdirSync(join(this.folder, 'bin'));
    const command = `#!/bin/sh\nshift\nexec "${process.execPath}" "${joinedProgram('adapters/cli/main.ts')}" "$@"\n`;
    writeFileSync(join(this.folder, 'bin/npx'), command, { mode: 0o755 });
    mkdirSync(join(this.folder, 'node_modules/.bin'));
    writeFileSync(join(this.folder, 'node_modules/.bin/embermq'), command.replace('shift\n', ''), { mode: 0o755 });
  }

  /** Write the programs with free ports. @param ports those that they name @returns the free ones */
  async write(...ports: string[]): Promise<number[]> {
    const free = await freePorts(ports.length);
    for (const [file, text] of this.#programs) {
      const code = ports.reduce((before, port, at) => before.replaceAll(port, String(free[at])), text);
      writeFileSync(join(this.folder, basename(file)), code);
    }
    return free;
  }

  /** Run a command in the folder. */
  run(command: string, ...args: string[]): Promise<{ stdout: string; stderr: string }> {
    const path = [join(this.folder, 'bin'), dirname(process.execPath), process.env.PATH].join(delimiter);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env; // tests of tutorials are separate test runs
    const options = { cwd: this.folder, env: { ...env, ...OTHER_PORTS, PATH: path }, timeout: 120_000 };
    return promisify(execFile)(command, args, options);
  }

  /** Start a program of Node in the folder. Resolves when it has printed a line. @returns a function that ends it and returns all its output */
  async start(program: string): Promise<() => Promise<{ stdout: string; stderr: string }>> {
    const child = spawn(process.execPath, [program], { cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text) => {
        printed[name] += text;
      });
    this.#started.add(child);
    const closed = once(child, 'close').finally(() => this.#started.delete(child));
    await Promise.race([once(child.stdout, 'data'), closed.then(() => assert.fail(printed.stderr))]);
    return async () => {
      child.kill();
      assert.deepEqual(await closed, [0, null], printed.stderr);
      return printed;
    };
  }

  /** Assert that the page shows these lines. */
  assertShown(lines: readonly string[]): void {
    for (const line of lines) assert.ok(this.page.includes(`${line}\n`), `the page shows "${line}"`);
  }

  /** End the programs that a failed test has left, and remove the folder. */
  remove(): void {
    for (const child of this.#started) child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The lines of a report of tests, without their durations. */
function reported(stdout: string): string[] {
  return stdout
    .split('\n')
    .filter((line) => /^ *[▶✔✖]/.test(line))
    .map((line) => line.replace(/ \([\d.]+ms\)$/, ''));
}

describe('the tutorial "Run a broker"', { skip }, () => {
  let copy: Copy;
  before(() => {
    copy = new Copy('run-a-broker');
  });
  after(() => copy.remove());

  it('checks a broker, explains a refusal and makes a backup, as its page shows', async () => {
    const [, http] = await copy.write('8883', '8081');
    const path = join(copy.folder, 'run-a-broker.sh');
    const url = `--url http://127.0.0.1:${http}/api/v4`;
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/ctl (why|backup)/g, `ctl $1 ${url}`));
    const { stdout, stderr } = await copy.run('bash', 'run-a-broker.sh');
    const lines = ['sensors/sensor-1/celsius 21.5', 'ok       exposure        clients must authenticate'];
    for (const line of lines) assert.ok(stdout.includes(line), stdout);
    copy.assertShown(lines);
    assert.match(stdout, /"code":"acl_file_rule".*rule 3 of the source \\"acl-file\\"/);
    assert.match(stderr, /PUBLISH to "sensors\/sensor-2\/celsius" was refused: not authorized/);
    assert.match(stderr, /restored: \d+ records/);
  });
});

describe('the tutorial "Test a device"', { skip }, () => {
  let copy: Copy;
  before(async () => {
    copy = new Copy('test-a-device');
    await copy.write('1883', '1884');
  });
  after(() => copy.remove());

  it('tests the device, as its page shows', async () => {
    const flags = ['--import', 'tsx', '--test', '--test-reporter=spec', 'pump.test.ts'];
    const { stdout } = await copy.run(process.execPath, ...flags);
    const lines = reported(stdout);
    assert.equal(lines.length, 8);
    copy.assertShown(lines);
  });

  it('records the device in another process, and replays it in a test, as its page shows', async () => {
    const { stdout } = await copy.run('bash', 'record.sh');
    const summary = /(?<=^traffic\.jsonl: 3 connections, )\d+(?= packets$)/m; // how many depends on the time that pings have
    const [packets] = summary.exec(copy.page) ?? assert.fail();
    copy.assertShown(stdout.replace(summary, packets).trimEnd().split('\n'));
    const flags = ['--import', 'tsx', '--test', '--test-reporter=spec', 'replay.test.ts'];
    const lines = reported((await copy.run(process.execPath, ...flags)).stdout);
    assert.equal(lines.length, 2);
    copy.assertShown(lines);
  });
});

describe('the tutorial "Move from Aedes"', { skip }, () => {
  let copy: Copy;
  let port: number;
  before(async () => {
    copy = new Copy('move-from-aedes');
    [port] = await copy.write('1883');
  });
  after(() => copy.remove());

  /** Run an app and its clients, which see what the page shows. @returns the output of the app to standard error */
  async function sees(app: string): Promise<string> {
    const stop = await copy.start(app);
    const clients = (await copy.run(process.execPath, 'devices.js')).stdout;
    const { stdout, stderr } = await stop();
    for (const output of [clients, stdout]) assert.ok(copy.page.includes(`\`\`\`\n${output}\`\`\`\n`), output);
    return stderr;
  }

  it('shows the same to the clients with Aedes and with embermq-aedes', async () => {
    assert.equal(await sees('app.js'), '');
    cpSync(join(root, 'adapters/aedes/package'), join(copy.folder, 'node_modules/aedes'), { recursive: true });
    const [, warning] = /(Warning: .*)\n/.exec(await sees('app.js')) ?? assert.fail();
    copy.assertShown([warning]);
  });

  it('shows the same to the clients with each interface of embermq, and keeps its state between them', async () => {
    assert.equal(await sees('halfway.js'), '');
    for (const app of ['halfway.js', 'native.js']) {
      const stop = await copy.start(app);
      const login = ['-u', 'ann', '-P', 'a password', '-p', String(port)];
      const asked = await copy.run(
        join(copy.folder, 'bin/npx'),
        'embermq',
        'sub',
        ...login,
        '-v',
        '-C',
        '1',
        '-t',
        'rooms/+/heating'
      );
      copy.assertShown([asked.stdout.trimEnd()]);
      await stop();
      assert.equal(await sees(app), '');
    }
  });
});
