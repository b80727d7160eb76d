import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { endTurn, type Output, takeOutput, writeOutput } from '../../lib/connection/output.ts';
import type { Frame } from '../../lib/packets/message.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

interface Entry {
  readonly frame: Frame | undefined;
  readonly mark: number;
}

/** Returns the bytes that an output should write, entry by entry. */
function slowBytes(entries: readonly Entry[]): Buffer {
  return Buffer.concat(
    entries.map(({ frame, mark }) => {
      if (frame === undefined) {
        const ack = Buffer.alloc(4);
        ack.writeUInt32BE(mark);
        return ack;
      }
      const copy = Buffer.from(frame.buf.subarray(frame.start, frame.end));
      if (mark === -1) return copy;
      copy[0] = mark >>> 16;
      if (frame.packetIdAt !== 0) copy.writeUInt16BE(mark & 0xffff, frame.packetIdAt - frame.start);
      return copy;
    })
  );
}

/** A stream that stores the written buffers themselves, which must not change later. */
class Written {
  readonly buffers: Buffer[] = [];
  corked = 0;
  wasCorked = false;

  write(buf: Buffer): boolean {
    this.buffers.push(buf);
    return true;
  }

  cork(): void {
    this.corked++;
    this.wasCorked = true;
  }

  uncork(): void {
    this.corked--;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.buffers);
  }
}

/** The outputs that have been used. */
const outputs = new Set<Output>();

function write(entries: readonly Entry[]): Written {
  const output = takeOutput();
  outputs.add(output);
  assert.equal(output.count, 0);
  let bytes = 0;
  for (const { frame, mark } of entries) {
    const at = output.count++;
    output.frames[at] = frame;
    output.marks[at] = mark;
    bytes += frame === undefined ? 4 : frame.end - frame.start;
  }
  const stream = new Written();
  assert.equal(writeOutput(output, bytes, stream as unknown as Duplex), true);
  assert.equal(stream.corked, 0);
  assert.deepEqual(stream.bytes, slowBytes(entries));
  return stream;
}

/** Encodes packets one after the other into one buffer. */
function framesOf(sizes: readonly number[], hasId: boolean, fill = 1): Frame[] {
  const gap = 3;
  const buf = Buffer.alloc(gap + sizes.reduce((sum, size) => sum + size, 0));
  for (let i = 0; i < buf.length; i++) buf[i] = (i * 7 + fill) & 255;
  let start = gap;
  return sizes.map((size) => {
    const frame = { buf, start, end: start + size, packetIdAt: hasId ? start + Math.min(4, size - 2) : 0 };
    start += size;
    return frame;
  });
}

const marked = (frame: Frame, id: number, first = 0x32): Entry => ({ frame, mark: (first << 16) | id });
const plain = (frame: Frame): Entry => ({ frame, mark: -1 });

describe('writeOutput', () => {
  it('writes a single unchanged frame without copying it', () => {
    const [frame] = framesOf([20], false) as [Frame];
    const { buffers } = write([plain(frame)]);
    assert.equal(buffers.length, 1);
    assert.equal(buffers[0]?.buffer, frame.buf.buffer);
  });

  it('copies small entries into one buffer, with their own first byte and packet id', () => {
    const [a, b, c] = framesOf([12, 60, 12], true) as [Frame, Frame, Frame];
    const before = Buffer.from(a.buf);
    const ack = { frame: undefined, mark: 0x4002_0007 };
    assert.equal(write([marked(a, 1), ack, marked(b, 2, 0x3a), marked(c, 65_535)]).buffers.length, 1);
    assert.deepEqual(a.buf, before, 'the shared frames are unchanged');
  });

  it('writes acknowledgements with the highest first byte and packet id correctly', () => {
    write([
      { frame: undefined, mark: (0x7002_ffff | 0) as number },
      { frame: undefined, mark: 0x6202_ffff }
    ]);
  });

  it('does not copy large payloads, only their headers', () => {
    const [large] = framesOf([9000], true) as [Frame];
    const [small] = framesOf([30], false) as [Frame];
    const { buffers, wasCorked } = write([plain(small), marked(large, 77), plain(small), plain(large)]);
    assert.ok(wasCorked, 'one system call');
    const shared = buffers.filter((buf) => buf.buffer === large.buf.buffer && buf.length > 8000);
    assert.equal(shared.length, 2);
  });

  it('gives each connection its own packet ids for the same frames', () => {
    endTurn();
    const frames = framesOf([20, 20, 20], true);
    const streams = [100, 200, 300].map((from) => write(frames.map((frame, i) => marked(frame, from + i))));
    assert.deepEqual(
      streams.map(({ bytes }) => bytes.readUInt16BE(4)),
      [100, 200, 300]
    );
  });

  it('shares one buffer between connections that send exactly the same bytes', () => {
    endTurn();
    const entries = framesOf([20, 20], false).map((frame) => marked(frame, 0, 0x30));
    const [one, two] = [write(entries), write(entries)];
    assert.equal(one.buffers[0]?.byteOffset, two.buffers[0]?.byteOffset);
    assert.equal(one.buffers[0]?.buffer, two.buffers[0]?.buffer);
    endTurn();
    assert.notEqual(write(entries).buffers[0]?.byteOffset, one.buffers[0]?.byteOffset, 'not after the end of the turn');
  });

  it('writes the same bytes as a slow version, for random entries', () => {
    const { below, pick } = randomSource('writeOutput');
    const written: [Written, Buffer][] = [];
    let entries: Entry[] = [];
    for (let round = 0; round < samples(1500); round++) {
      const choice = below(10);
      if (choice < 5 || entries.length === 0) {
        entries = [];
        for (let parts = 1 + below(6); parts > 0; parts--) {
          const hasId = below(2) === 0;
          const sizes = Array.from({ length: 1 + below(4) }, () => 7 + below(pick([4, 60, 300, 6000])));
          for (const frame of framesOf(sizes, hasId, below(256))) {
            const isPlain = below(3) === 0;
            entries.push(isPlain ? plain(frame) : marked(frame, hasId ? 1 + below(65_535) : 0, 0x30 + below(16)));
            if (below(5) === 0)
              entries.push({ frame: undefined, mark: (pick([0x4002, 0x5002, 0x7002]) << 16) | below(65_536) });
          }
        }
        if (below(4) === 0) entries.reverse();
      } else if (choice < 8) {
        // The next connection: the same frames with other packet ids.
        entries = entries.map(({ frame, mark }) => ({ frame, mark: mark === -1 ? -1 : (mark & ~0xff) | below(256) }));
      } else if (choice === 8) {
        entries = entries.slice(0, 1 + below(entries.length));
      }
      written.push([write(entries), slowBytes(entries)]);
      if (below(7) !== 0) continue;
      endTurn();
      for (const { frames } of outputs) assert.ok(!frames.some(Boolean), 'no buffer is retained after the turn');
    }
    for (const [stream, bytes] of written) assert.deepEqual(stream.bytes, bytes, 'written buffers are unchanged');
  });
});
