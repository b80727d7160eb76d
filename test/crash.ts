// `npm run crash`: kills brokers under load, starts them again on their data folders, and checks that every promise was kept. The first
// argument is the number of rounds, 200 by default; pairs of brokers with a bridge, and brokers with stream rules, also over another broker, follow them. SEED repeats the plan of a run (clients, load, when to kill), not its timing.
//
// Before that, every data folder written by a release (`store/fixtures`) is opened by brokers that are killed, and must be complete
// after each kill; with `--upgrades N` N such folders, and nothing else. With `--from BUILD` half of the folders of the rounds are created by
// that earlier release.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runBridge } from './crash/bridge-life.ts';
import { FolderLife, type Sender } from './crash/folder-life.ts';
import { runStreams } from './crash/streams-life.ts';
import { upgradeRound } from './crash/upgrade.ts';
import { OLD_FOLDERS, SERVED_FOLDERS } from './store/old-folder.ts';

/** Rounds on one folder, with the same clients. */
const ROUNDS_OF_A_FOLDER = 10;
/** On every nth folder the broker is in an app, which publishes and whose clock is advanced while the broker is down. */
const IN_APP = 2;
/** On every nth folder of either kind, except those begun by an earlier release, the broker has a webhook whose events are persisted. */
const WITH_WEBHOOK = 2;
/** On every nth folder of `embermq serve`, among those without a webhook, a rule sends to two web servers. */
const WITH_RULE = 4;
/** A pair of brokers with a bridge follows for every nth folder. */
const BRIDGE_EVERY = 2;
/** A broker with stream rules follows for every nth folder. */
const STREAMS_EVERY = 2;
/** A folder of an earlier release is opened for every nth round; each of them at least once. */
const UPGRADE_EVERY = 4;
/** Number of moments at which it is killed. */
const KILLS_OF_STREAMS = 6;
/** Number of moments at which one or both brokers of a bridge are killed. */
const KILLS_OF_A_BRIDGE = 10;

const { values, positionals } = parseArgs({
  options: { from: { type: 'string' }, upgrades: { type: 'string' } },
  allowPositionals: true
});
const rounds = Number(positionals[0] ?? 200);
const folders = [...OLD_FOLDERS, ...SERVED_FOLDERS];
const upgrades = Number(values.upgrades ?? Math.max(folders.length, Math.floor(rounds / UPGRADE_EVERY)));
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
if (![rounds, upgrades, seed].every(Number.isInteger) || rounds < 1 || upgrades < 1) {
  process.stderr.write(
    'usage: npm run crash -- [rounds] [--from BUILD] | --upgrades N, with SEED=<whole number> to repeat a plan; BUILD: folder of a built earlier release\n'
  );
  process.exit(2);
}
process.stdout.write(
  `crash: ${values.upgrades === undefined ? `${rounds} rounds` : `${upgrades} upgrades`}, SEED=${seed}\n`
);
let kills = 0;
let messages = 0;
let events = 0;
for (let at = 0; at < upgrades; at++) {
  const name = folders[at % folders.length];
  const own = seed + Math.floor(at / folders.length);
  const startMs = performance.now();
  const outcome = await upgradeRound(name, own);
  kills += outcome.kills;
  const seconds = (performance.now() - startMs) / 1000;
  process.stdout.write(
    `  SEED=${own}, upgrade from ${name}: complete after each of ${outcome.kills} kills, ${outcome.duringUpgrade} of them while the store was opened, ${seconds.toFixed(1)} s\n`
  );
}
if (values.upgrades !== undefined) {
  process.stdout.write(`crash: passed, ${upgrades} upgrades, ${kills} kills\n`);
  process.exit(0);
}
for (let done = 0, at = 0; done < rounds; at++) {
  // The seed of each folder determines the run that begins with it, and whether it uses an app.
  const own = seed + at;
  const isApp = own % IN_APP === 0;
  const from = at % 4 < 2 ? values.from : undefined;
  const sender = from === undefined ? senderOf(own >> 1, isApp) : undefined;
  const life = new FolderLife(own, isApp, sender, from === undefined ? {} : { from: resolve(from) });
  const startMs = performance.now();
  const outcome = await life.run(Math.min(ROUNDS_OF_A_FOLDER, rounds - done));
  done += outcome.rounds;
  kills += outcome.kills;
  messages += outcome.messages;
  events += outcome.events;
  const seconds = (performance.now() - startMs) / 1000;
  const sent =
    sender === undefined ? '' : `, ${outcome.events} requests of a ${sender} (${outcome.repeatedEvents} repeated)`;
  process.stdout.write(
    `  SEED=${own}${isApp ? ', in an app, clock moved' : ''}${from ? `, begun by ${from}` : ''}: ${outcome.rounds} rounds, ${outcome.kills} kills, ${outcome.messages} messages${sent}, ${seconds.toFixed(1)} s\n`
  );
  if (outcome.faults.length > 0) {
    process.stdout.write(
      `crash: failed in round ${outcome.rounds + 1}; SEED=${own} repeats its plan, not its timing; see ${life.folder} and its .journal\n`
    );
    for (const fault of outcome.faults) process.stdout.write(`  ${fault}\n`);
    process.exit(1);
  }
}
let bridged = 0;
for (let done = 0, own = seed; done < rounds; done += ROUNDS_OF_A_FOLDER * BRIDGE_EVERY, own++) {
  const startMs = performance.now();
  const outcome = await runBridge(own, KILLS_OF_A_BRIDGE);
  kills += outcome.kills;
  bridged += outcome.messages;
  const seconds = (performance.now() - startMs) / 1000;
  process.stdout.write(
    `  SEED=${own}, a bridge: ${outcome.kills} kills, ${outcome.messages} messages, ${seconds.toFixed(1)} s\n`
  );
  if (outcome.faults.length > 0) {
    process.stdout.write(`crash: a bridge has failed; SEED=${own} repeats its plan, not its timing\n`);
    for (const fault of outcome.faults) process.stdout.write(`  ${fault}\n`);
    process.exit(1);
  }
}
let rows = 0;
for (let done = 0, own = seed; done < rounds; done += ROUNDS_OF_A_FOLDER * STREAMS_EVERY, own++)
  for (const isRemote of [false, true]) {
    const startMs = performance.now();
    const outcome = await runStreams(own, KILLS_OF_STREAMS, isRemote);
    kills += outcome.kills;
    rows += outcome.rows;
    const seconds = (performance.now() - startMs) / 1000;
    const what = isRemote ? 'stream rules over another broker' : 'stream rules';
    process.stdout.write(
      `  SEED=${own}, ${what}: ${outcome.kills} kills, ${outcome.rows} rows, ${seconds.toFixed(1)} s\n`
    );
    if (outcome.faults.length > 0) {
      process.stdout.write(`crash: a broker with ${what} has failed; SEED=${own} repeats its plan, not its timing\n`);
      for (const fault of outcome.faults) process.stdout.write(`  ${fault}\n`);
      process.exit(1);
    }
  }
process.stdout.write(
  `crash: passed, ${rounds} rounds, ${kills} kills, ${messages} messages, ${events} requests of webhooks and rules, ${bridged} messages over bridges, ${rows} rows of stream rules\n`
);
process.exit(0);

/** The part that sends publishes to web servers, on the nth folder of its kind. */
function senderOf(at: number, isApp: boolean): Sender {
  if (at % WITH_WEBHOOK === 0) return 'webhook';
  return !isApp && at % WITH_RULE === 1 ? 'rule' : undefined;
}
