import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { traceFile } from '../../adapters/trace/index.ts';
import { createBroker } from '../../lib/index.ts';
import { fill, smallDisk } from '../level/small-disk.ts';

describe('traceFile', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trace-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('appends the lines of a trace to a file readable only by its owner, and is closed with the trace', async () => {
    const path = join(folder, 't.jsonl');
    const broker = await createBroker().start();
    for (const round of [1, 2]) {
      const to = await traceFile(path);
      const trace = broker.trace({ topic: 't', to });
      await broker.publish('t', `round ${round}`);
      trace.stop();
      await finished(to);
    }
    await broker.stop();
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).payload),
      ['round 1', 'round 1', 'round 2', 'round 2']
    );
    if (process.platform !== 'win32') assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('keeps the configured number of files, each within maxBytes and with whole lines', async () => {
    const path = join(folder, 't.jsonl');
    const to = await traceFile(path, { maxBytes: '4KB', files: 3 });
    const line = (n: number) => `{"n":${n},"x":"${'x'.repeat(100)}"}\n`;
    for (let n = 0; n < 500; n++) to.write(line(n));
    to.end();
    await finished(to);
    const texts = [`${path}.2`, `${path}.1`, path].map((name) => readFileSync(name, 'utf8'));
    for (const text of texts) assert.ok(text.length <= 4_096 && text.endsWith('\n'));
    assert.equal(existsSync(`${path}.3`), false);
    const numbers = texts
      .join('')
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text).n);
    assert.deepEqual(
      numbers,
      Array.from({ length: numbers.length }, (_, at) => 500 - numbers.length + at)
    );
  });

  it('writes a line longer than maxBytes into a separate file', async () => {
    const path = join(folder, 't.jsonl');
    const to = await traceFile(path, { maxBytes: 4_096 });
    for (const text of ['short\n', `${'x'.repeat(10_000)}\n`]) to.write(text);
    to.end();
    await finished(to);
    assert.equal(readFileSync(`${path}.1`, 'utf8'), 'short\n');
    assert.equal(statSync(path).size, 10_001);
  });

  it('refuses a missing folder, a folder, and invalid options', async () => {
    await assert.rejects(traceFile(join(folder, 'no', 't.jsonl')), {
      code: 'TRACE_FILE_FAILED',
      message: `cannot write the trace file ${join(folder, 'no', 't.jsonl')}: the folder ${join(folder, 'no')} does not exist`
    });
    await assert.rejects(traceFile(folder), { code: 'TRACE_FILE_FAILED', message: /not a regular file/ });
    await assert.rejects(traceFile(join(folder, 't'), { files: 1 }), { code: 'OPTION_INVALID' });
    await assert.rejects(traceFile(join(folder, 't'), { size: 1 } as object), { code: 'OPTION_UNKNOWN' });
  });

  it('ends the trace with an error event when a file can no longer be written', async () => {
    const path = join(folder, 'in', 't.jsonl');
    mkdirSync(join(folder, 'in'));
    writeFileSync(path, 'x'.repeat(4_096));
    const broker = await createBroker().start();
    const to = await traceFile(path, { maxBytes: 4_096 });
    const trace = broker.trace({ topic: 't', to });
    rmSync(join(folder, 'in'), { recursive: true });
    const failure = broker.nextEvent('error');
    await broker.publish('t', 'x');
    const { error, during } = await failure;
    assert.equal((error as { code?: string }).code, 'TRACE_FILE_FAILED');
    assert.equal(during, 'trace 1');
    assert.equal(trace.endReason, 'error');
    await broker.stop();
  });

  it('ends the trace with an error event when the disk is full', async (t) => {
    using disk = smallDisk(t, '1m');
    if (disk === undefined) return;
    const broker = await createBroker().start();
    const path = join(disk.path, 't.jsonl');
    const trace = broker.trace({ topic: 't', to: await traceFile(path), maxPayloadBytes: '1MB' });
    fill(join(disk.path, 'ballast'));
    const failure = broker.nextEvent('error');
    await broker.publish('t', 'x'.repeat(10_000));
    const { message } = (await failure).error;
    assert.equal(message, `cannot write the trace file ${path}: the disk is full`);
    assert.equal(trace.endReason, 'error');
    await broker.stop();
  });
});
