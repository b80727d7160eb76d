import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ByteStream } from '../../lib/base/byte-stream.ts';
import { WorkCount } from '../../lib/base/pending-work.ts';
import { duplexPair } from '../../lib/client/duplex.ts';
import { localPair } from '../../lib/client/local-stream.ts';
import { cpuMs } from '../support/cpu.ts';

const immediate = () => new Promise((resolve) => setImmediate(resolve));

function collect(stream: ByteStream): Buffer[] {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return chunks;
}

function emitted(stream: ByteStream, event: 'drain' | 'end' | 'close'): Promise<void> {
  return new Promise((resolve) => stream.on(event, resolve));
}

/** Both kinds of pairs behave in the same way. */
const PAIRS = { duplexPair, localPair: (work = new WorkCount()) => localPair(work) };

for (const [name, pair] of Object.entries(PAIRS))
  describe(name, () => {
    it('transfers bytes in order in both directions', async () => {
      const [a, b] = pair();
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
      const [a, b] = pair();
      const atB = collect(b);
      b.resume();
      await immediate();
      a.write(Buffer.from('x'));
      assert.equal(atB.length, 0);
      await immediate();
      assert.equal(atB.length, 1);
    });

    it('makes the writer wait while the reader is paused, and drains when it resumes', async () => {
      const [a, b] = pair();
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
      await emitted(a, 'drain');
      await immediate();
      assert.equal(a.writableLength, 0);
      assert.equal(Buffer.concat(atB).length % block.length, 0);
    });

    it('ends the other side after the bytes that were written', async () => {
      const [a, b] = pair();
      const atB = collect(b);
      a.resume();
      const closed = Promise.all([emitted(b, 'end'), emitted(a, 'close'), emitted(b, 'close')]);
      a.write(Buffer.from('last words'));
      a.end();
      await closed;
      assert.equal(Buffer.concat(atB).toString(), 'last words');
    });

    it('delivers the bytes that were written before destroy(), then closes the other side', async () => {
      const [a, b] = pair();
      const atB = collect(b);
      a.write(Buffer.from('bye'));
      a.destroy();
      await emitted(b, 'close');
      assert.equal(Buffer.concat(atB).toString(), 'bye');
    });

    it('resets the other side if it is destroyed with an error', async () => {
      const [a, b] = pair();
      const failed = new Promise<NodeJS.ErrnoException>((resolve) => b.on('error', resolve));
      a.on('error', () => {});
      a.destroy(new Error('cable'));
      const error = await failed;
      assert.equal(error.code, 'ECONNRESET');
      assert.equal(b.destroyed, true);
    });

    it('discards bytes that are written after the peer was destroyed', async () => {
      const [a, b] = pair();
      b.destroy();
      await immediate();
      const closed = new Promise<void>((resolve, reject) => {
        a.on('error', reject);
        a.on('close', resolve);
      });
      a.write(Buffer.from('no reader'));
      await immediate();
      assert.equal(a.writableLength, 0);
      a.resume();
      await closed;
    });

    it('survives end() and destroy() in the same turn on both sides', async () => {
      const [a, b] = pair();
      collect(a);
      collect(b);
      const closed = Promise.all([emitted(a, 'close'), emitted(b, 'close')]);
      for (const stream of [a, b]) {
        stream.write(Buffer.from('x'));
        stream.end();
      }
      a.destroy();
      b.destroy();
      await closed;
    });

    it('emits error and close after all promises of the turn, so that listeners can still be added', async () => {
      const [a, b] = pair();
      a.destroy(new Error('cable'));
      for (let i = 0; i < 100; i++) await Promise.resolve();
      const seen: string[] = [];
      for (const [name, stream] of Object.entries({ a, b })) {
        stream.on('error', () => seen.push(`${name} error`));
        stream.on('close', () => seen.push(`${name} close`));
      }
      for (let left = 5; left > 0; left--) await immediate();
      assert.deepEqual(seen, ['a error', 'a close', 'b error', 'b close']);
    });

    it('ends a paused reader only when it has read everything', async () => {
      const [a, b] = pair();
      const seen: string[] = [];
      b.on('data', (chunk) => seen.push(chunk.toString()));
      b.on('end', () => seen.push('end'));
      b.pause();
      a.write(Buffer.from('x'));
      a.end();
      await immediate();
      assert.deepEqual([seen, b.readableEnded], [[], false]);
      b.resume();
      await emitted(b, 'close');
      assert.deepEqual([seen, b.readableEnded], [['x', 'end'], true]);
    });

    it('drains when the peer is destroyed', async () => {
      const [a, b] = pair();
      b.pause();
      while (a.write(Buffer.alloc(50_000)));
      await immediate();
      while (a.write(Buffer.alloc(50_000)));
      await immediate();
      assert.equal(a.writableNeedDrain, true);
      b.destroy();
      await emitted(a, 'drain');
      assert.equal(a.writableLength, 0);
    });

    it('ends before it drains when the peer is destroyed', async () => {
      const [a, b] = pair();
      const seen: string[] = [];
      a.on('drain', () => seen.push('drain'));
      a.on('end', () => seen.push('end'));
      a.resume();
      b.pause();
      while (a.write(Buffer.alloc(50_000)));
      await immediate();
      while (a.write(Buffer.alloc(50_000)));
      await immediate();
      seen.length = 0;
      b.destroy();
      for (let left = 5; left > 0; left--) await immediate();
      assert.deepEqual(seen.slice(0, 1), ['end']);
    });
  });

for (const [name, pair] of Object.entries(PAIRS))
  describe(`the work count of a ${name}`, () => {
    it('counts bytes from the write until the reader gets them', async () => {
      const work = new WorkCount();
      const [a, b] = pair(work);
      collect(b);
      assert.equal(work.count, 0);
      a.write(Buffer.from('x'));
      assert.equal(work.count, 1);
      await work.settled();
      assert.equal(work.count, 0);
    });

    it('does not count bytes that wait for a paused reader, and counts them again when it resumes', async () => {
      const work = new WorkCount();
      const [a, b] = pair(work);
      const chunks = collect(b);
      b.pause();
      a.write(Buffer.alloc(200_000));
      a.write(Buffer.alloc(200_000));
      await work.settled();
      await immediate();
      assert.equal(work.count, 0);
      b.resume();
      assert.equal(work.count, 1);
      await work.settled();
      assert.equal(Buffer.concat(chunks).length, 400_000);
    });
  });

describe('localPair with many waiting chunks', () => {
  /** Returns the CPU time that it takes to read this many chunks, all of which wait in one of the two streams. */
  async function cpuMsFor(count: number, waitsIn: 'writer' | 'reader'): Promise<number> {
    const [a, b] = localPair(new WorkCount());
    let bytes = 0;
    b.on('data', (chunk) => {
      bytes += chunk.length;
    });
    b.pause();
    const chunk = Buffer.from('x');
    for (let i = 0; i < count; i++) a.writeUnchanged(chunk);
    if (waitsIn === 'reader') a.destroy(); // the reader receives all bytes that were written
    await immediate();
    const before = cpuMs();
    b.resume();
    while (bytes < count) await immediate();
    return cpuMs() - before;
  }

  for (const waitsIn of ['writer', 'reader'] as const)
    it(`takes time in proportion to their number if they wait in the ${waitsIn}`, async () => {
      const few = await cpuMsFor(10_000, waitsIn);
      const many = await cpuMsFor(160_000, waitsIn);
      // About 16 times as much, and 10,000 times if each chunk moved all others. The bound allows for garbage collection.
      assert.ok(many < 160 * Math.max(few, 5), `${few} ms for 10,000 chunks, ${many} ms for 160,000`);
    });

  it('loses and repeats no chunks if a listener throws', async () => {
    const [a, b] = localPair(new WorkCount());
    const thrown: unknown[] = [];
    const note = (error: unknown) => thrown.push(error);
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', note);
    try {
      let got = '';
      b.on('data', (chunk) => {
        got += chunk;
        if (got.length % 3 === 0) throw new Error(got);
      });
      for (const letter of 'abcdefgh') a.write(Buffer.from(letter));
      await immediate();
      b.pause();
      for (const letter of 'ijklmnop') a.write(Buffer.from(letter));
      await immediate();
      b.resume();
      for (let left = 5; left > 0; left--) await immediate();
      assert.equal(got, 'abcdefghijklmnop');
      assert.equal(thrown.length, 5);
    } finally {
      process.off('uncaughtException', note);
      for (const listener of listeners) process.on('uncaughtException', listener);
    }
  });
});

describe('the work count of a duplexPair that is read in other ways', () => {
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
