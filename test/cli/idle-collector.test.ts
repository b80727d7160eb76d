import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IdlePolicy, type Step } from '../../adapters/cli/idle-collector.ts';

const MB = 2 ** 20;

describe('IdlePolicy', () => {
  type Look = readonly [totalMegabytes: number, usedMegabytes: number, share: number, spareMegabytes?: number];

  function steps(...looks: readonly Look[]): (Step | undefined)[] {
    const policy = new IdlePolicy();
    return looks.map(([total, used, share, spare = 60]) => policy.look(total * MB, used * MB, share, spare * MB));
  }

  const nothing = (count: number) => Array<undefined>(count).fill(undefined);

  it('collects garbage after a burst, when the process is idle, and then compacts the heap', () => {
    assert.deepEqual(
      steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0.1], [90, 12, 0.1], [90, 12, 0], [20, 12, 0]),
      [...nothing(3), 'collect', undefined, 'compact', undefined]
    );
  });

  it('compacts a heap that the collection has shrunk as well', () => {
    assert.deepEqual(
      steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0], [40, 12, 0], [40, 12, 0], [16, 12, 0]),
      [...nothing(3), 'collect', undefined, 'compact', undefined]
    );
  });

  it('takes no step while the process is busy', () => {
    const looks: Look[] = [[20, 10, 0], ...[0.9, 0.5, 0.1, 0.4, 0.1].map((share): Look => [600, 500, share])];
    assert.deepEqual(steps(...looks), nothing(6));
  });

  it('compacts the heap even if the collection takes several seconds', () => {
    const collecting = Array<Look>(6).fill([300, 280, 0]);
    assert.deepEqual(steps([20, 10, 0], [300, 280, 0.9], [300, 280, 0], [300, 280, 0.1], ...collecting, [90, 12, 0]), [
      ...nothing(3),
      'collect',
      ...nothing(6),
      'compact'
    ]);
  });

  it('does not compact memory in use, and takes no step before the heap has grown by a quarter', () => {
    const idle = Array<Look>(12).fill([900, 800, 0]);
    assert.deepEqual(steps([20, 10, 0], [900, 800, 0.9], ...idle, [1_100, 1_000, 0], [1_130, 1_000, 0]), [
      ...nothing(3),
      'collect',
      ...nothing(11),
      'collect'
    ]);
  });

  it('compacts a larger heap only if that releases several times the memory in use', () => {
    const decision = (used: number, spare: number) =>
      steps(
        [20, 10, 0],
        [900, 800, 0.9],
        [900, 800, 0],
        [900, 800, 0],
        ...Array<Look>(2).fill([500, used, 0, spare])
      ).at(-1);
    assert.deepEqual(
      [decision(100, 400), decision(100, 390), decision(128, 600), decision(140, 800)],
      ['compact', undefined, 'compact', undefined]
    );
  });

  it('compacts the heap once after the start, when the process is idle', () => {
    assert.deepEqual(steps([57, 28, 0.9], [57, 28, 0.5], ...Array<Look>(4).fill([57, 28, 0])), [
      ...nothing(3),
      'compact',
      ...nothing(2)
    ]);
  });

  it('takes no step if the heap has grown by less than 32 MB', () => {
    assert.deepEqual(steps(...Array<Look>(3).fill([20, 10, 0]), ...Array<Look>(4).fill([50, 40, 0])), [
      undefined,
      'compact',
      ...nothing(5)
    ]);
  });
});
