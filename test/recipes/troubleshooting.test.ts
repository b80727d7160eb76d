import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CommandProcess } from '../cli/process.ts';
import { makeCertificates } from '../support/certificates.ts';

const page = readFileSync(join(import.meta.dirname, '../../examples/recipes/troubleshooting.md'), 'utf8');
const APP = { EMBERMQ_APP: 'ops:a secret of the test' };

/** Lines that need default ports or a process without file descriptors: other tests have them (`test/cli`, `test/net`). */
const ELSEWHERE = /descriptors_short|continuing without/;

/** A line without what differs from run to run: level (of repetitions), numbers, times, the data folder, and blanks that align a column. */
function plain(line: string, folder: string): string {
  return line
    .replaceAll(folder, '/srv/broker')
    .replace(/^(warn|debug): /, '')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\d+/g, 'N')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The lines that the page quotes, each as the beginning of a line that is printed. */
function quotedLines(): string[] {
  return [...page.matchAll(/^```text\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block
      .trim()
      .split('\n')
      .map((line) => line.replace(/ \.\.\.$/, ''))
  );
}

describe('The page about troubleshooting', () => {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-troubleshooting-'));
  const certificates = makeCertificates();
  const outputs: string[] = [];
  let broker: CommandProcess;
  let ports: Record<string, number>;

  /** Runs the command to its end, and keeps what it prints. */
  async function run(...args: string[]): Promise<void> {
    const command = new CommandProcess(args, APP);
    command.child.stdin?.end('right\n');
    await command.end();
    outputs.push(command.stdout, command.stderr);
  }

  const login = (name: string, password = 'right', id = name) => [
    '-i',
    id,
    '-u',
    name,
    '-P',
    password,
    '-p',
    `${ports.mqtt}`
  ];
  const ctl = (...args: string[]) => run('ctl', ...args, '--json', '--url', `http://127.0.0.1:${ports.http}`);

  before(async () => {
    await run('passwd', join(folder, 'users'), 'meter-7', '--cost', '10');
    await run('passwd', join(folder, 'users'), 'panel', '--cost', '10');
    const args = ['serve', '--data-dir', join(folder, 'data'), '--password-file', join(folder, 'users')];
    const { certFile, keyFile } = certificates.server;
    const open = ['--mqtt-port', '0', '--mqtts-port', '0', '--ws-port', '0', '--http-port', '0'];
    broker = new CommandProcess(
      [...args, ...open, '--cert', certFile, '--key', keyFile, '--log-level', 'debug', '--max-mqueue-len', '1'],
      APP
    );
    ports = await broker.ready();
  });

  after(async () => {
    broker.child.kill('SIGTERM');
    await broker.end();
    certificates[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });

  it('quotes lines that are printed', async () => {
    const message = ['-t', 'meters/7', '-m', '21', '-q', '1'];
    await run('pub', ...login('meter-7', 'wrong'), ...message);
    await run('pub', '-i', 'anon', '-p', `${ports.mqtt}`, ...message);
    await run('pub', '-L', `mqtts://localhost:${ports.mqtts}`, ...message);
    await run('pub', '-L', `ws://127.0.0.1:${ports.ws}/wrong`, ...message);
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', origin: 'https://app.example' };
    const refused = request(`http://127.0.0.1:${ports.ws}/mqtt`, { headers: upgrade }).end();
    assert.equal((await once(refused, 'response'))[0].statusCode, 403);

    const keep = ['-c', '-W', '0.5', '-q', '1'];
    await run('sub', ...login('panel'), ...keep, '-t', 'Meters/+');
    await run('pub', ...login('meter-7'), ...message);
    await ctl('why', '--topic', 'meters/7', '--client', 'panel');
    await run('sub', ...login('panel'), ...keep, '-t', 'meters/+');
    for (let at = 0; at < 3; at++) await run('pub', ...login('meter-7'), ...message);
    await ctl('drops', 'list');
    const twins = [1, 2].map(() => new CommandProcess(['sub', ...login('meter-7', 'right', 'twin'), '-t', 'x'], APP));
    while (!broker.stderr.includes('session discarded clientId=twin')) await once(broker.child.stderr!, 'data');
    for (const twin of twins) twin.child.kill('SIGKILL');
    await ctl('clients', 'history', 'twin');

    const others = ['--mqtt-port', '0', '--ws-port', 'off'];
    await run('serve', '--memory', '--ws-port', 'off', '--mqtt-port', `${ports.mqtt}`);
    await run('serve', '--data-dir', join(folder, 'data'), ...others);
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as { readonly port: number };
    await new Promise((resolve) => free.close(resolve));
    await run('pub', '-p', `${port}`, ...message);

    const printed = [...outputs, broker.stderr].join('\n');
    const rows = printed
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const lines = printed.split('\n').map((line) => plain(line, folder));
    const missing = quotedLines().filter((line) => {
      if (ELSEWHERE.test(line)) return false;
      const wanted = plain(line, folder);
      if (lines.some((printedLine) => printedLine.startsWith(wanted))) return false;
      return !rows.some((row) => isRow(wanted, row));
    });
    assert.deepEqual(missing, []);
  });
});

/** Checks whether a line of a table, or of `why`, shows a row that is printed as JSON elsewhere. */
function isRow(line: string, row: Record<string, unknown>): boolean {
  if ('remedy' in row) return line === plain(`2026-01-01T00:00:00Z ${row.code}: ${row.text} ${row.remedy}`, '/none');
  const values = Object.values(row).map(String);
  const names = Object.keys(row);
  const cells = line.split(' ').filter((cell) => !/^(TIME|N|…|\w*…)$/.test(cell));
  const words = [...values, ...names].join(' ').replace(/\d+/g, 'N').split(/\s+/);
  return cells.every((cell) => words.includes(cell));
}
