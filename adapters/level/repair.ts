import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from './folder.ts';
import { findDamagedTables } from './tables.ts';

/** A kind of block that does not exist: LevelDB passes over such a block and says so, whatever it holds. */
const NO_KIND = 0xff;

/**
 * Make a folder openable again: bad blocks are left out, files of which nothing can be saved go into the folder `lost` in it, and LevelDB
 * puts together what there is.
 * @throws BrokerError STORE_LOCKED; what LevelDB and the disk say
 */
export async function repairFolder(folder: string): Promise<void> {
  const { Level } = (await import('level')) as unknown as { Level: { repair(location: string): Promise<void> } };
  await makeFolder(folder); // LevelDB would miss files in a folder that is not there
  await checkUnlocked(folder);
  for (const { file, blockEnds } of await findDamagedTables(folder)) {
    if (blockEnds.length === 0) {
      await mkdir(join(folder, 'lost'), { recursive: true });
      await rename(join(folder, file), join(folder, 'lost', file));
      continue;
    }
    const table = await open(join(folder, file), 'r+');
    try {
      for (const end of blockEnds) await table.write(Buffer.of(NO_KIND), 0, 1, end);
    } finally {
      await table.close();
    }
  }
  await Level.repair(folder);
}

/**
 * See whether another process has a folder, without LevelDB's reading what is in it: it takes the lock, and then refuses a database that is there.
 * @throws what LevelDB says when it is locked
 */
export async function checkUnlocked(folder: string): Promise<void> {
  const { Level } = await import('level');
  const probe = new Level(folder, { errorIfExists: true, createIfMissing: false });
  await probe.open().catch((error: Error) => {
    if ((error.cause as { code?: string } | undefined)?.code === 'LEVEL_LOCKED') throw error;
  });
  await probe.close();
}
