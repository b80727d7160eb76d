import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { ACTION_GROUPS } from '../../adapters/cli/ctl/actions.ts';
import { ListTable } from '../../adapters/cli/ctl/table.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { streamsApi } from '../../adapters/streams-api/index.ts';
import type { Broker } from '../../lib/index.ts';
import { serve } from '../support/management.ts';
import { passTime, startExampleBroker } from '../support/management-fixture.ts';
import { testShell } from './shell.ts';

let broker: Broker;
let servers: Awaited<ReturnType<typeof serve>>[];
let flags: string[];

before(async () => {
  broker = await startExampleBroker();
  await broker.applications.create({ id: 'me', secret: 'a-secret' });
  await broker.streams.create('CREATE STREAM pumps () WITH (DATASOURCE="pumps/#", FORMAT="json")');
  await broker.streams.rules.create({ id: 'pressure', sql: 'SELECT * FROM pumps', actions: [{ log: {} }] });
  servers = [await serve(managementApi(broker, { prefix: '/api/v4' }).node), await serve(streamsApi(broker).node)];
  const [management, streams] = servers.map(({ port }) => `http://127.0.0.1:${port}`);
  flags = ['--url', management, '--rules-url', streams, '--app', 'me:a-secret'];
});

after(async () => {
  for (const server of servers) await server[Symbol.asyncDispose]();
  await broker.stop();
});

async function onTerminal(
  words: readonly string[],
  columns: number,
  env: Record<string, string> = {}
): Promise<string> {
  const shell = testShell();
  Object.assign(shell.env, env);
  shell.stdout.isTTY = true;
  shell.stdout.columns = columns;
  const parts: string[] = [];
  shell.stdout.on('data', (part) => parts.push(String(part)));
  assert.equal(await runCommand(['ctl', ...flags, ...words], shell), 0, words.join(' ') + shell.err());
  await new Promise((resolve) => setImmediate(resolve));
  return parts.join('');
}

/** Lists that need no argument. The functions are many, and need no broker; plugins are those of the process. */
const LISTS = Object.values(ACTION_GROUPS)
  .flat()
  .filter(
    ({ usage, columns }) => columns !== undefined && !/ [A-Z]/.test(usage) && !/stream (functions|plugins)/.test(usage)
  )
  .map(({ name }) => name);

/** Lists of which the broker of the examples has no rows. */
const EMPTY = new Set(['slow subscriptions', 'slow consumers', 'clients busiest', 'ban list', 'stream tables']);

/** The names of the columns of a row of headings. */
function headsOf(text: string): string[] {
  return text.slice(0, text.indexOf('\n')).split(/ {2,}/);
}

describe('a table in blocks', () => {
  const heads = ['name', 'address', 'queue'];

  it('prints the headings again when a block has other columns', () => {
    const table = new ListTable(30);
    assert.equal(table.block(heads, [['a', '10.0.0.1', '7']]), 'name  address   queue\na     10.0.0.1  7\n');
    assert.equal(table.block(heads, [['b', '10.0.0.2', '8']]), 'b     10.0.0.2  8\n');
    const long = 'c'.repeat(24);
    assert.equal(table.block(heads, [[long, '10.0.0.3', '9']]), `name${' '.repeat(20)}  …\n${long}\n`);
    assert.equal(table.block(heads, [[long, '10.0.0.4', '9']]), `${long}\n`);
    assert.equal(table.block(heads, [['d', '10.0.0.5', '1']]), 'name  address   queue\nd     10.0.0.5  1\n');
  });
});

describe('lists of ctl on a terminal', () => {
  it('fits lists into 80 columns, with the whole first column', async () => {
    assert.ok(LISTS.length > 25, `${LISTS.length} lists`);
    for (const name of LISTS) {
      const text = await passTime(broker, onTerminal(name.split(' '), 80));
      const wide = await passTime(broker, onTerminal(name.split(' '), 1_000));
      const lines = text.trimEnd().split('\n');
      assert.deepEqual(
        lines.filter(({ length }) => length > 80),
        [],
        name
      );
      assert.equal(lines[1] === '(none)' || lines.length > 1, true, name);
      if (lines[1] === '(none)') assert.ok(EMPTY.has(name) || /^stream /.test(name), `${name} has no rows`);
      const [first] = headsOf(wide);
      const start = wide.split('\n')[0].indexOf(headsOf(wide)[1] ?? '') || first.length;
      for (const [at, line] of lines.entries())
        assert.doesNotMatch(line.slice(0, start), /\S…/, `${name}, line ${at}: the first column is cut`);
      assert.doesNotMatch(wide, /…(?! )/, `${name}: something is cut although there is room`);
    }
  });

  it('prints whole lists if standard output is not a terminal', async () => {
    const shell = testShell();
    shell.env.COLUMNS = '40';
    assert.equal(await runCommand(['ctl', ...flags, '--no-json', 'rules', 'events'], shell), 0);
    const out = shell.out();
    assert.match(out, /^event +columns\n/);
    assert.ok(out.split('\n').some(({ length }) => length > 200));
    assert.doesNotMatch(out, /…/);
  });

  it('takes the width from COLUMNS rather than from the terminal', async () => {
    const widest = async (columns: number, env: Record<string, string>) => {
      const lines = (await onTerminal(['rules', 'events'], columns, env)).split('\n');
      return Math.max(...lines.map(({ length }) => length));
    };
    assert.equal(await widest(80, {}), 80);
    assert.equal(await widest(80, { COLUMNS: '60' }), 60);
    assert.equal(await widest(80, { COLUMNS: 'wide' }), 80);
    assert.ok((await widest(0, {})) > 200, 'a terminal without a width');
  });
});

describe('ListTable', () => {
  const HEADS = ['id', 'note', 'count', 'more.detail'];

  it('leaves out columns that are empty in all rows', () => {
    const table = new ListTable(80);
    assert.equal(
      table.block(HEADS, [
        ['a', '', '0', ''],
        ['b', '', '1', '']
      ]),
      'id  count\na   0\nb   1\n'
    );
    assert.equal(table.block(HEADS, [['c', '', '', '']]), 'c\n');
    assert.equal(table.block(HEADS, [['d', 'x', '', '']]), 'id  note  count\nd   x\n', 'a later row has a note');
    assert.equal(new ListTable(80).block(HEADS, []), 'id  note  count  more.detail\n');
  });

  it('cuts the last columns first, and never the first one, numbers or times', () => {
    const rows = [['sensor-in-the-hall-of-building-1', 'x'.repeat(30), '123456789', 'y'.repeat(40)]];
    const at = (room: number) => new ListTable(room).block(HEADS, rows).split('\n');
    const [id, note] = rows[0];
    assert.equal(at(120)[1], rows[0].join('  '));
    assert.equal(at(100)[1], `${id}  ${note}  123456789  ${'y'.repeat(22)}…`);
    assert.equal(at(80)[1], `${id}  ${'x'.repeat(19)}…  123456789  ${'y'.repeat(12)}…`);
    assert.deepEqual(at(63), [
      `id${' '.repeat(32)}note      count      detail`,
      `${id}  xxxxxxx…  123456789  yyyyyyy…`,
      ''
    ]);
    assert.deepEqual(at(60), [`id${' '.repeat(32)}note      count      …`, `${id}  xxxxxxx…  123456789`, '']);
    assert.deepEqual(at(40), [`id${' '.repeat(32)}…`, id, '']);
    assert.deepEqual(at(20), [`id${' '.repeat(18)}  …`.trimEnd(), `${id.slice(0, 19)}…`, '']);
  });
});
