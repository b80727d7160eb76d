import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { functionModule, pluginsFixture } from '../support/plugins.ts';

const AREA = { id: 'area', script: 'function area(x, y) { return x * y; }' };

/** Scripts, the arguments of a call, and its result. */
const RESULTS: readonly (readonly [script: string, args: readonly unknown[], result: unknown])[] = [
  ['(a, b) => a + b', [1, 2.5], 3.5],
  ['(a, b) => a + b', ['x', 'é€😀'], 'xé€😀'],
  ['(a) => a * 2', [21n], 42],
  ['(a) => a + 1n', [2n ** 62n], 2n ** 62n + 1n],
  ['(a) => a', [true], true],
  ['(a) => a', [null], null],
  ['(a) => a', [], undefined],
  ['(a) => typeof a', [undefined], 'undefined'],
  ['({ a }) => ({ b: a.map((x) => x + 1) })', [{ a: [1, 2] }], { b: [2, 3] }],
  ['(a) => a', [new Date(0)], '1970-01-01T00:00:00.000Z'],
  ['(a) => a', [{ bytes: Buffer.from('hi') }], { bytes: 'aGk=' }],
  ['() => new Date(0)', [], '1970-01-01T00:00:00.000Z'],
  ['() => [NaN, 1n]', [], [null, 1]],
  ['() => [typeof process, typeof require, typeof globalThis.fetch, typeof setTimeout]', [], Array(4).fill('undefined')]
];

/** Scripts whose calls fail, and the error. */
const FAILURES: readonly (readonly [script: string, message: RegExp])[] = [
  ['() => {\n  null.x;\n}', /^function f: TypeError: cannot read property 'x' of null \(line 2, column 7\)$/],
  ['() => { throw "text" }', /^function f: it has thrown text$/],
  ['() => { for (;;); }', /^function f: it took longer than 50 ms, the option scriptTime$/],
  ['() => { for (;;) try { for (;;); } catch {} }', /it took longer than 50 ms/],
  ['() => /(a+)+$/.test("a".repeat(40) + "b")', /it took longer than 50 ms/],
  ['() => { const a = []; for (;;) a.push(new Uint8Array(1e5)); }', /needs more memory than 20971520 bytes/],
  ['() => { const a = []; for (;;) a.push({}); }', /more memory|took longer/],
  ['() => "x".repeat(1e8)', /needs more memory than 20971520 bytes, the option scriptMemory/],
  ['() => f()', /stack overflow/],
  ['() => f', /the result is a function, which is not a value/],
  ['() => Symbol()', /the result is a symbol/],
  ['async () => 1', /the result must not be a promise/],
  ['() => { const a = {}; a.a = a; return a; }', /circular reference/]
];

describe('Functions in JavaScript', () => {
  it('creates, lists, replaces and deletes functions', async () => {
    const { plugins, streams } = await pluginsFixture();
    const { scripts } = plugins;
    const made = await scripts.create({ ...AREA, description: 'Area.' });
    assert.deepEqual(made, { ...AREA, description: 'Area.', isAgg: false });
    assert.equal(streams.call('area', 3, 4), 12);
    assert.equal(streams.functions.get('area')?.about, 'Area.');
    assert.deepEqual(await scripts.list(), ['area']);
    assert.deepEqual(await scripts.get('area'), made);
    await assert.rejects(scripts.create(AREA), {
      code: 'FUNCTION_EXISTS',
      message: 'function name area already exists'
    });
    await scripts.replace({ ...AREA, script: 'const area = (x) => x + 1;' });
    assert.equal(streams.call('area', 3), 4);
    await scripts.replace({ id: 'Twice', script: 'const Twice = (x) => 2 * x' });
    assert.equal(streams.call('twice', 3), 6);
    await scripts.delete('area');
    assert.equal(streams.functions.has('area'), false);
    for (const call of [scripts.delete('area'), scripts.get('area'), scripts.counters('area')])
      await assert.rejects(call, { code: 'SCRIPT_NOT_FOUND', message: 'not found' });
  });

  it('restores the functions after a restart', async () => {
    const fixture = await pluginsFixture();
    await fixture.plugins.scripts.create(AREA);
    const again = await fixture.reopen();
    assert.equal(again.streams.call('area', 2, 5), 10);
    assert.deepEqual(again.failures, []);
  });

  it('share their names with functions of plugins', async () => {
    const { plugins, archive } = await pluginsFixture();
    await plugins.scripts.create(AREA);
    const file = archive('area.zip', { name: 'Area.js', content: functionModule('Area', 1) });
    await assert.rejects(plugins.create('functions', { name: 'area', file }), { code: 'FUNCTION_EXISTS' });
    const other = archive('b.zip', { name: 'B.js', content: functionModule('B', 1) });
    await plugins.create('functions', { name: 'b', file: other });
    await assert.rejects(plugins.scripts.replace({ id: 'B', script: 'const B = 1' }), { code: 'FUNCTION_EXISTS' });
  });

  it('take and return values', async () => {
    const { plugins, streams } = await pluginsFixture();
    for (const [script, args, result] of RESULTS) {
      await plugins.scripts.replace({ id: 'f', script: `const f = ${script}` });
      assert.deepEqual(streams.call('f', ...args), result, script);
    }
  });

  it('receive arrays if they aggregate', async () => {
    const { plugins, streams } = await pluginsFixture();
    await plugins.scripts.create({
      id: 'span',
      script: 'function span(x) { return Math.max(...x) - Math.min(...x); }',
      isAgg: true
    });
    const span = streams.functions.get('span');
    assert.ok(span?.kind === 'aggregate');
    const rows = span.make({ ruleId: 'r' } as never);
    for (const x of [3, 9, 4n]) rows.add([x], undefined as never);
    assert.equal(rows.result(), 6);
  });

  it('enforces limits of time and memory, and reports errors with positions', async () => {
    const { plugins, streams } = await pluginsFixture({ scriptTime: 50, scriptMemory: '20MB' });
    for (const [script, message] of FAILURES) {
      await plugins.scripts.replace({ id: 'f', script: `const f = ${script}` });
      assert.throws(() => streams.call('f'), { code: 'STREAM_FAILED', message }, script);
    }
  });

  it('remain callable after a limit was reached, and count how often it was', async () => {
    const { plugins, streams } = await pluginsFixture({ scriptTime: 50, scriptMemory: '20MB' });
    const script = 'function f(n) { if (n === 0) for (;;); return "x".repeat(n).length; }';
    await plugins.scripts.create({ id: 'f', script });
    assert.throws(() => streams.call('f', 0), /took longer/);
    assert.throws(() => streams.call('f', 1e8), /more memory/);
    assert.equal(streams.call('f', 3), 3);
    assert.deepEqual(await plugins.scripts.counters('f'), { calls: 3, timeouts: 1, failures: 1 });
  });

  it('reports the fault of an invalid script, with its position', async () => {
    const { plugins } = await pluginsFixture({ scriptTime: 50, maxScripts: 1 });
    const refused = async (input: unknown) => {
      const error = await plugins.scripts.create(input as never).catch((reason: Error) => reason);
      assert.equal((error as { code?: string }).code, 'SCRIPT_INVALID');
      return (error as Error).message;
    };
    assert.match(
      await refused({ id: 'f', script: 'function f() {\n  return ;;)\n}' }),
      /SyntaxError: .*\(line 2, column 12\)$/
    );
    assert.match(await refused({ id: 'f', script: 'var g = 1' }), /the script does not define the function "f"$/);
    assert.match(await refused({ id: 'f', script: 'for (;;);' }), /took longer than 1000 ms/);
    for (const input of [
      { id: 'a b', script: 'x' },
      { id: 'f' },
      { id: 'f', script: 'x', isAgg: 1 },
      null,
      { id: 'f', script: 'x'.repeat(3e5) }
    ])
      await refused(input);
    await plugins.scripts.create(AREA);
    await assert.rejects(plugins.scripts.create({ id: 'g', script: 'var g = 1' }), { code: 'SCRIPTS_FULL' });
  });

  it('write to the log', async () => {
    const lines: string[] = [];
    const { plugins, streams } = await pluginsFixture({ onLog: (name, text) => void lines.push(`${name}: ${text}`) });
    await plugins.scripts.create({ id: 'f', script: 'function f(x) { log("got", x, {}); }' });
    streams.call('f', 5);
    assert.deepEqual(lines, ['f: got 5 {}']);
  });
});
