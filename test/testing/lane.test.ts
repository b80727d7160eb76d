import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { duplexPair } from '../../lib/client/duplex.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { Lane } from '../../lib/testing/lane.ts';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

function random(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A packet of that type with so many bytes behind its fixed header. */
function packet(type: number, length: number, fill: number): Buffer {
  const header = [type << 4];
  let left = length;
  do {
    header.push((left & 127) | (left > 127 ? 128 : 0));
    left >>>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from(header), Buffer.alloc(length, fill)]);
}

/** A lane between two pairs: what is written to `input` is collected in `output`. */
function lane(clock = new VirtualClock()) {
  const [input, from] = duplexPair();
  const [to, reader] = duplexPair();
  const output: Buffer[] = [];
  const told: { bytes: Buffer; isDropped: boolean }[] = [];
  reader.on('data', (chunk: Buffer) => output.push(chunk));
  const made = new Lane(from, to, clock, (bytes, isDropped) => told.push({ bytes, isDropped }));
  return { clock, input, reader, lane: made, output: () => Buffer.concat(output), told };
}

describe('a lane', () => {
  it('finds the packets in any cutting of the bytes, and drops or doubles the chosen ones', async () => {
    console.log(`SEED=${seed}`);
    for (let round = 0; round < 50; round++) {
      const next = random(seed + round);
      const packets = Array.from({ length: 30 }, (_, n) =>
        packet(1 + Math.floor(next() * 15), Math.floor(next() ** 4 * 20_000), n)
      );
      const { lane: spoiled, input, output, told, clock } = lane();
      spoiled.add('drop', { cmd: ['publish', 'puback'], nth: 2, count: 3 });
      spoiled.add('duplicate', { nth: 5, count: 4 });
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

  it('lets through what is no MQTT', async () => {
    const { input, output, told, clock } = lane();
    const bytes = Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    for (const byte of bytes) input.write(Buffer.from([byte]));
    await clock.settle();
    assert.deepEqual(output(), bytes);
    assert.equal(told.length, 0);
  });

  it('keeps the order of late bytes and of the end, also when the delay becomes shorter', async () => {
    const { lane: slow, input, output, reader, clock } = lane();
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
