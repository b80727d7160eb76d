import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IdlePolicy, type Step } from '../../adapters/cli/idle-collector.ts';

const MB = 2 ** 20;

describe('what the command does about garbage', () => {
  type Look = readonly [totalMegabytes: number, usedMegabytes: number, share: number, spareMegabytes?: number];

  function steps(...looks: readonly Look[]): (Step | undefined)[] {
    const policy = new IdlePolicy();
    return looks.map(([total, used, share, spare = 60]) => policy.look(total * MB, used * MB, share, spare * MB));
  }

  const nothing = (count: number) => Array<undefined>(count).fill(undefined);

  it('is to collect it after a burst, once it is idle, and then to compact the heap', () => {
    assert.deepEqual(
      steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0.1], [90, 12, 0.1], [90, 12, 0], [20, 12, 0]),
      [...nothing(3), 'collect', undefined, 'compact', undefined]
    );
  });

  it('is to compact also a heap that the collection has made small', () => {
    assert.deepEqual(
      steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0], [40, 12, 0], [40, 12, 0], [16, 12, 0]),
      [...nothing(3), 'collect', undefined, 'compact', undefined]
    );
  });

  it('is nothing while it is at work', () => {
    const looks: Look[] = [[20, 10, 0], ...[0.9, 0.5, 0.1, 0.4, 0.1].map((share): Look => [600, 500, share])];
    assert.deepEqual(steps(...looks), nothing(6));
  });

  it('is to compact the heap also if the collection takes some seconds', () => {
    const collecting = Array<Look>(6).fill([300, 280, 0]);
    assert.deepEqual(steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0.1], ...collecting, [90, 12, 0]), [
      ...nothing(3),
      'collect',
      ...nothing(6),
      'compact'
    ]);
  });

  it('is no stop of the process for what is in use, and nothing more before that has grown by a quarter', () => {
    const idle = Array<Look>(12).fill([900, 800, 0]);
    assert.deepEqual(steps([20, 10, 0], [900, 800, 0.9], ...idle, [1_100, 1_000, 0], [1_130, 1_000, 0]), [
      ...nothing(3),
      'collect',
      ...nothing(11),
      'collect'
    ]);
  });

  it('is a longer stop of the process only if that gives back several times what is in use', () => {
    const after = (used: number, spare: number) =>
      steps(
        [20, 10, 0],
        [900, 800, 0.9],
        [900, 800, 0],
        [900, 800, 0],
        ...Array<Look>(2).fill([500, used, 0, spare])
      ).at(-1);
    assert.deepEqual(
      [after(100, 400), after(100, 390), after(128, 600), after(140, 800)],
      ['compact', undefined, 'compact', undefined]
    );
  });

  it('is nothing for less than 32 MB', () => {
    assert.deepEqual(steps(...Array<Look>(2).fill([20, 10, 0]), ...Array<Look>(4).fill([50, 40, 0])), nothing(6));
  });
});
