import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { replyWithLines } from '../../adapters/management/line-reply.ts';
import { Listing } from '../../adapters/management/listing.ts';
import { answerWith, replyWithListings } from '../../adapters/management/reply.ts';
import { systemClock } from '../../lib/base/clock.ts';
import { SliceQueue } from '../../lib/base/collections/slice-queue.ts';
import { WorkCount } from '../../lib/base/pending-work.ts';

const NUMBERS = Array.from({ length: 2_000 }, (_, at) => at);

/**
 * Read an answer as fast as its parts arrive. `made` is called for each row or line.
 * @returns the number of rows produced in each turn, and the text
 */
async function readBody(answerOf: (made: () => void) => unknown) {
  const perTurn = [0];
  let isDone = false;
  const count = () => {
    perTurn.push(0);
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const slices = new SliceQueue(systemClock, new WorkCount());
  const page = { number: 1, limit: NUMBERS.length, cursor: undefined } as never;
  const { body } = await answerWith(
    answerOf(() => perTurn[perTurn.length - 1]++),
    page,
    () => slices.next()
  );
  let text = '';
  for await (const part of body) text += part;
  isDone = true;
  return { most: Math.max(...perTurn), made: perTurn.reduce((sum, some) => sum + some), text };
}

describe('Long answers', () => {
  const shapeOf = (made: () => void) => (n: number) => {
    made();
    return { n };
  };

  it('writes an object with long lists in slices, each in a separate turn', async () => {
    const { most, made, text } = await readBody((row) =>
      replyWithListings({ a: new Listing(NUMBERS, shapeOf(row)), b: new Listing([1], shapeOf(row)), c: 'c' })
    );
    assert.ok(most <= 201, `${most} in one turn`);
    assert.equal(made, 2_001);
    assert.deepEqual(JSON.parse(text).data, { a: NUMBERS.map((n) => ({ n })), b: [{ n: 1 }], c: 'c' });
  });

  it('writes a list in slices, each in a separate turn', async () => {
    const { most, made, text } = await readBody((row) => new Listing(NUMBERS, shapeOf(row)));
    assert.ok(most <= 200, `${most} in one turn`);
    assert.equal(made, 2_000);
    assert.equal(JSON.parse(text).data.length, 2_000);
  });

  it('writes lines that are available at once in slices, each in a separate turn', async () => {
    const line = 'x'.repeat(1_000);
    const { most, made, text } = await readBody((one) => {
      async function* lines() {
        for (const _ of NUMBERS) {
          one();
          yield line;
        }
      }
      return replyWithLines(lines());
    });
    assert.ok(most <= 70, `${most} in one turn`);
    assert.deepEqual([made, text.length], [2_000, 2_002_000]);
  });
});
