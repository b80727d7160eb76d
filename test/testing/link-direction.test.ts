import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { duplexPair } from '../../lib/client/duplex.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { LinkDirection } from '../../lib/testing/link-direction.ts';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

function random(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A packet of the given type with `length` bytes after its fixed header. */
function packet(type: number, length: number, fill: number): Buffer {
  const header = [type << 4];
  let left = length;
  do {
    header.push((left & 127) | (left > 127 ? 128 : 0));
    left >>>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from(header), Buffer.alloc(length, fill)]);
}

/** A link direction between two pairs of streams. The bytes written to `input` are collected in `output`. */
function connectedDirection(clock = new VirtualClock()) {
  const [input, from] = duplexPair();
  const [to, reader] = duplexPair();
  const output: Buffer[] = [];
  const told: { bytes: Buffer; isDropped: boolean }[] = [];
  reader.on('data', (chunk: Buffer) => output.push(chunk));
  const made = new LinkDirection(from, to, clock, (bytes, isDropped) => told.push({ bytes, isDropped }));
  return { clock, input, reader, direction: made, output: () => Buffer.concat(output), told };
}

describe('LinkDirection', () => {
  it('finds the packets for any split of the bytes, and drops or duplicates the chosen ones', async () => {
    console.log(`SEED=${seed}`);
    for (let round = 0; round < 50; round++) {
      const next = random(seed + round);
      const packets = Array.from({ length: 30 }, (_, n) =>
        packet(1 + Math.floor(next() * 15), Math.floor(next() ** 4 * 20_000), n)
      );
      const { direction, input, output, told, clock } = connectedDirection();
      direction.add('drop', { cmd: ['publish', 'puback'], nth: 2, count: 3 });
      direction.add('duplicate', { nth: 5, count: 4 });
      const bytes = Buffer.concat(packets);
      for (let at = 0; at < bytes.length; ) {
        const end = at + 1 + Math.floor(next() ** 3 * 3_000);
        input.write(bytes.subarray(at, end));
        at = end;
        if (next() < 0.5) await clock.settle();
      }
      await clock.settle();
      let choosable = 0;
      const fates = packets.map((each, n) => {
        const isChoosable = each[0] >> 4 === 3 || each[0] >> 4 === 4;
        if (isChoosable) choosable++;
        return { each, isDropped: isChoosable && choosable >= 2 && choosable <= 4, n };
      });
      let copies = 4;
      const expected = fates.flatMap(({ each, isDropped, n }) => {
        if (isDropped) return [];
        return n >= 4 && copies-- > 0 ? [each, each] : [each];
      });
      assert.ok(output().equals(Buffer.concat(expected)), `round ${round}`);
      assert.deepEqual(
        told.map(({ bytes, isDropped }) => [bytes.length, isDropped]),
        fates.map(({ each, isDropped }) => [each.length, isDropped])
      );
    }
  });

  it('forwards bytes that are not MQTT', async () => {
    const { input, output, told, clock } = connectedDirection();
    const bytes = Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    for (const byte of bytes) input.write(Buffer.from([byte]));
    await clock.settle();
    assert.deepEqual(output(), bytes);
    assert.equal(told.length, 0);
  });

  it('keeps the order of delayed bytes and of the end, even if the delay becomes shorter', async () => {
    const { direction: slow, input, output, reader, clock } = connectedDirection();
    let hasEnded = false;
    reader.on('end', () => {
      hasEnded = true;
    });
    slow.delay(1_000);
    input.write('a');
    await clock.settle();
    slow.delay(10);
    input.write('b');
    await clock.settle();
    input.end('c');
    await clock.advance(5);
    assert.equal(output().length, 0);
    await clock.advance(2_000);
    assert.equal(output().toString(), 'abc');
    assert.equal(hasEnded, true);
  });
});
