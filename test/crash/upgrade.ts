import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../fuzz/random.ts';
import { checkOldFolder, copyOldFolder, copyServedFolder, OLD_FOLDERS } from '../store/old-folder.ts';
import { checkDefinitions, checkRecords, upgraded } from '../store/served-folder.ts';
import { BrokerProcess, type BrokerSettings } from './broker-process.ts';

const MAX_KILLS = 6;
/** Time between two looks at the data folder, in milliseconds. */
const LOOK_MS = 1;

/** A data folder of an earlier release, and how it is opened. */
interface OldState {
  readonly folder: string;
  readonly settings: () => BrokerSettings;
  /** True if the broker may write to standard error. */
  readonly isTalkative: boolean;
  /** Checks that nothing is missing. This changes the folder. @returns what the broker has written to standard error */
  readonly check: (folder: string) => Promise<string>;
}

/** The result of the kills on one folder. */
interface UpgradeOutcome {
  readonly kills: number;
  /** The kills after the broker had opened the store and before it was ready. */
  readonly duringUpgrade: number;
}

/**
 * Opens a data folder of an earlier release with brokers of this one that are killed while they open it or shortly after. After each kill, a copy
 * of the folder is opened and its state must be complete.
 * @throws Error naming what is missing, and the seed
 */
export async function upgradeRound(name: string, seed: number): Promise<UpgradeOutcome> {
  const home = mkdtempSync(join(tmpdir(), 'embermq-upgrade-'));
  const random = new Random(seed);
  const state = OLD_FOLDERS.includes(name) ? inApp(name, join(home, 'data')) : served(name, join(home, 'data'));
  const spans = await startTimes(state, join(home, 'measured'));
  const kills = 2 + random.below(MAX_KILLS - 1);
  let duringUpgrade = 0;
  let said = '';
  try {
    for (let left = kills; left > 0; left--) {
      const { complaints, isDuring } = await killOnce(state, spans, random);
      said += complaints;
      if (isDuring) duringUpgrade++;
      if (!state.isTalkative) assert.equal(complaints, '', 'the broker said');
      const copy = join(home, `after-${kills - left + 1}`);
      cpSync(state.folder, copy, { recursive: true });
      const log = await state.check(copy);
      // the report is written at least once, by a broker that was killed or by the one that the check has started
      if (state.isTalkative) assert.match(said + log, /an earlier release has written the store, and \d+ of its/);
    }
    await state.check(state.folder);
  } catch (error) {
    throw new Error(`${name}, SEED=${seed}, ${home}: ${(error as Error).message}`, { cause: error });
  }
  rmSync(home, { recursive: true });
  return { kills, duringUpgrade };
}

/** A folder of a broker in an app. */
function inApp(name: string, folder: string): OldState {
  const expected = copyOldFolder(name, folder);
  // Nothing becomes due: the clock is that of the time when the folder was created.
  const settings = () => ({ ...SETTINGS, aheadMs: expected.madeAtMs - Date.now() });
  const check = async (path: string) => {
    await checkOldFolder(path, expected);
    return '';
  };
  return { folder, settings, isTalkative: false, check };
}

/** A folder of `embermq serve`. */
function served(name: string, folder: string): OldState {
  const expected = copyServedFolder(name, folder);
  const settings = () => ({ ...SETTINGS, aheadMs: undefined, streams: expected.config.streams ?? {} });
  const check = (path: string) =>
    upgraded(path, expected, async (broker) => {
      await checkDefinitions(broker, expected);
      await checkRecords(broker);
    });
  return { folder, settings, isTalkative: true, check };
}

const SETTINGS = { durability: 'process', priorities: {} } as const;

/** Times of a start: until the store is being opened, and from then until the broker is ready. */
interface Spans {
  readonly loadMs: number;
  readonly openMs: number;
}

/** Measures a start on a copy of the folder. */
async function startTimes({ folder, settings }: OldState, copy: string): Promise<Spans> {
  cpSync(folder, copy, { recursive: true });
  const startMs = performance.now();
  const broker = new BrokerProcess(copy, settings());
  const ready = broker.ready();
  await opening(copy, broker);
  const loadMs = performance.now() - startMs;
  await ready;
  const openMs = performance.now() - startMs - loadMs;
  await broker.kill();
  return { loadMs, openMs };
}

/** Starts a broker and kills it: while it loads or opens the store, while it opens the store, or when it has been ready for a while. */
async function killOnce({ folder, settings }: OldState, { loadMs, openMs }: Spans, random: Random) {
  const broker = new BrokerProcess(folder, settings());
  let isReady = false;
  const ready = broker.ready().then((port) => {
    isReady = port !== undefined;
  });
  const choice = random.below(4);
  if (choice === 0) await sleep(random.below(Math.ceil(loadMs + openMs)));
  else if (choice === 1) {
    await ready;
    await sleep(random.below(200));
  } else {
    await opening(folder, broker);
    await sleep(random.below(Math.ceil(openMs)));
  }
  const isDuring = !isReady && isOpenedBy(folder, broker);
  await broker.kill();
  await ready;
  return { complaints: broker.complaints, isDuring };
}

/** Waits until the broker opens the store, or has ended. */
async function opening(folder: string, broker: BrokerProcess): Promise<void> {
  while (!isOpenedBy(folder, broker) && broker.child.exitCode === null) await sleep(LOOK_MS);
}

/** True if the broker has opened the store. The file names the process that was the last one to do so. */
function isOpenedBy(folder: string, { child }: BrokerProcess): boolean {
  try {
    return readFileSync(join(folder, 'OWNER'), 'latin1').split('\n')[0] === String(child.pid);
  } catch {
    return false; // it was closed
  }
}
