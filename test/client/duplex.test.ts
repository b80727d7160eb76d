import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { WorkCount } from '../../lib/base/pending-work.ts';
import { duplexPair } from '../../lib/client/duplex.ts';

const immediate = () => new Promise((resolve) => setImmediate(resolve));

function collect(stream: Duplex): Buffer[] {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return chunks;
}

describe('duplexPair', () => {
  it('transfers bytes in order in both directions', async () => {
    const [a, b] = duplexPair();
    const atA = collect(a);
    const atB = collect(b);
    for (let i = 0; i < 100; i++) {
      a.write(Buffer.from([i]));
      b.write(Buffer.from([255 - i]));
    }
    await immediate();
    assert.deepEqual([...Buffer.concat(atB)], [...Array(100).keys()]);
    assert.deepEqual(
      [...Buffer.concat(atA)],
      [...Array(100).keys()].map((i) => 255 - i)
    );
  });

  it('runs no code of the reader inside a write', async () => {
    const [a, b] = duplexPair();
    const atB = collect(b);
    b.resume();
    await immediate();
    a.write('x');
    assert.equal(atB.length, 0);
    await immediate();
    assert.equal(atB.length, 1);
  });

  it('makes the writer wait while the reader is paused, and drains when it resumes', async () => {
    const [a, b] = duplexPair();
    b.pause();
    const block = Buffer.alloc(16_384);
    let writes = 0;
    while (a.write(block) && writes < 1000) writes++;
    await immediate();
    while (a.write(block) && writes < 1000) writes++;
    await immediate();
    assert.ok(writes < 12, `${writes} writes went through`);
    assert.ok(a.writableLength >= 65_536);
    const atB = collect(b);
    b.resume();
    await once(a, 'drain');
    await immediate();
    assert.equal(a.writableLength, 0);
    assert.equal(Buffer.concat(atB).length % block.length, 0);
  });

  it('ends the other side after the bytes that were written', async () => {
    const [a, b] = duplexPair();
    const atB = collect(b);
    a.resume();
    const closed = Promise.all([once(b, 'end'), once(a, 'close'), once(b, 'close')]);
    a.write('last words');
    a.end();
    await closed;
    assert.equal(Buffer.concat(atB).toString(), 'last words');
  });

  it('delivers the bytes that were written before destroy(), then closes the other side', async () => {
    const [a, b] = duplexPair();
    const atB = collect(b);
    a.write('bye');
    a.destroy();
    await once(b, 'close');
    assert.equal(Buffer.concat(atB).toString(), 'bye');
  });

  it('resets the other side if it is destroyed with an error', async () => {
    const [a, b] = duplexPair();
    const failed = once(b, 'error') as Promise<[NodeJS.ErrnoException]>;
    a.on('error', () => {});
    a.destroy(new Error('cable'));
    const [error] = await failed;
    assert.equal(error.code, 'ECONNRESET');
    assert.equal(b.destroyed, true);
  });

  it('discards bytes that are written after the peer was destroyed', async () => {
    const [a, b] = duplexPair();
    b.destroy();
    await new Promise<void>((resolve, reject) => {
      a.on('error', reject);
      a.write('nobody there', () => resolve());
    });
    a.resume();
    await once(a, 'close');
  });

  it('survives end() and destroy() in the same turn on both sides', async () => {
    const [a, b] = duplexPair();
    collect(a);
    collect(b);
    const closed = Promise.all([once(a, 'close'), once(b, 'close')]);
    a.end('x');
    b.end('y');
    a.destroy();
    b.destroy();
    await closed;
  });
});

describe('the work count of a pair', () => {
  it('counts bytes from the write until the reader gets them', async () => {
    const work = new WorkCount();
    const [a, b] = duplexPair(work);
    collect(b);
    assert.equal(work.count, 0);
    a.write('x');
    assert.equal(work.count, 1);
    await work.settled();
    assert.equal(work.count, 0);
  });

  it('does not count bytes that wait for a paused reader, and counts them again when it resumes', async () => {
    const work = new WorkCount();
    const [a, b] = duplexPair(work);
    b.on('data', () => {});
    b.pause();
    a.write(Buffer.alloc(200_000));
    a.write(Buffer.alloc(200_000));
    await work.settled();
    await immediate();
    assert.equal(work.count, 0);
    b.resume();
    assert.equal(work.count, 1);
    await work.settled();
    assert.equal(b.readableLength, 0);
  });

  it('returns to zero if a reader calls read(), pauses midway, or is destroyed', async () => {
    const work = new WorkCount();
    for (const action of ['read', 'halfway', 'destroy', 'fail', 'iterate'] as const) {
      const [a, b] = duplexPair(work);
      a.on('error', () => {});
      b.on('error', () => {});
      if (action === 'read') b.on('readable', () => b.read());
      else if (action === 'iterate') {
        void (async () => {
          for await (const _ of b);
        })().catch(() => {});
      } else
        b.on('data', () =>
          action === 'halfway' ? b.pause() : action === 'destroy' ? b.destroy() : b.destroy(new Error())
        );
      for (let i = 0; i < 5; i++) a.write(Buffer.alloc(50_000));
      await work.settled();
      await immediate();
      assert.equal(work.count, 0, action);
      a.destroy();
      b.destroy();
      await immediate();
      assert.equal(work.count, 0, action);
    }
  });
});
