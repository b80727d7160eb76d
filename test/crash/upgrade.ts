import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../fuzz/random.ts';
import { checkOldFolder, copyOldFolder } from '../store/old-folder.ts';
import { BrokerProcess } from './broker-process.ts';

const MAX_KILLS = 6;

/**
 * Opens a data folder of an earlier release with brokers of this one that are killed while they open it or shortly after, and checks that
 * its state is complete.
 * @returns how often a broker was killed
 * @throws AssertionError naming what is missing
 */
export async function upgradeRound(name: string, seed: number): Promise<number> {
  const random = new Random(seed);
  const folder = mkdtempSync(join(tmpdir(), 'embermq-upgrade-'));
  const expected = copyOldFolder(name, folder);
  const kills = 2 + random.below(MAX_KILLS - 1);
  for (let left = kills; left > 0; left--) {
    // Nothing becomes due: the clock is that of the time when the folder was created.
    const aheadMs = expected.madeAtMs - Date.now();
    const broker = new BrokerProcess(folder, { durability: 'process', priorities: {}, aheadMs });
    const ready = broker.ready();
    if (random.once(2)) {
      await ready;
      await sleep(random.below(200));
    } else await sleep(random.below(400));
    await broker.kill();
    await ready;
    if (broker.complaints !== '') throw new Error(`${folder}: the broker said: ${broker.complaints}`);
  }
  await checkOldFolder(folder, expected);
  rmSync(folder, { recursive: true });
  return kills;
}
