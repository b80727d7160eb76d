// `npm run power -- N`: lets a broker with durability "power" lose power N times (20 by default) while it is under load, and checks that
// nothing that it has acknowledged is lost. Its data folder is on an ext4 file system in a file. The broker is stopped (SIGSTOP), the file is
// copied, and the next start is on the copy, which does not have what the kernel had not yet written. SEED repeats the plan of a run, not its timing.
//
// If something fails, the log of every start since the file system was made is printed, and the image is kept. Where file systems may not be
// mounted (root is needed), nothing is checked; with REQUIRE_POWER=1 this is a failure.
import { FolderLife } from './crash/folder-life.ts';
import { PowerDisk } from './crash/power-disk.ts';

/** Losses of power on one file system, with the same clients. */
const ROUNDS_OF_A_DISK = 10;

const rounds = Number(process.argv[2] ?? 20);
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  process.stderr.write('usage: npm run power -- [rounds], with SEED=<whole number> to repeat a plan\n');
  process.exit(2);
}
process.stdout.write(`power: ${rounds} rounds, SEED=${seed}\n`);
let losses = 0;
let messages = 0;
let slowestMs = 0;
for (let done = 0, own = seed; done < rounds; own++) {
  const disk = makeDisk();
  const life = new FolderLife(own, own % 2 === 0, undefined, { disk });
  const outcome = await life.run(Math.min(ROUNDS_OF_A_DISK, rounds - done));
  done += outcome.rounds;
  losses += outcome.losses;
  messages += outcome.messages;
  slowestMs = Math.max(slowestMs, ...outcome.starts.map(({ readyMs }) => readyMs ?? 0));
  process.stdout.write(
    `  SEED=${own}: ${outcome.rounds} rounds, ${outcome.losses} losses of power, ${outcome.kills} kills, ${outcome.messages} messages\n`
  );
  if (outcome.faults.length > 0) {
    process.stdout.write(`power: failed; SEED=${own} repeats its plan, not its timing; the disk is in ${disk.home}\n`);
    for (const fault of outcome.faults) process.stdout.write(`  ${fault}\n`);
    for (const [at, { log }] of outcome.starts.entries()) process.stdout.write(`-- start ${at + 1}\n${log}\n`);
    disk.close();
    process.exit(1);
  }
  disk.remove();
}
process.stdout.write(
  `power: passed, ${losses} losses of power, ${messages} messages, slowest start ${(slowestMs / 1000).toFixed(1)} s\n`
);
process.exit(0);

/** Ends the process if disks cannot be created. */
function makeDisk(): PowerDisk {
  try {
    return PowerDisk.create();
  } catch (error) {
    const isRequired = process.env.REQUIRE_POWER === '1';
    const text = `file systems cannot be made and mounted here: ${(error as Error).message}`;
    process.stdout.write(isRequired ? `power: failed, ${text}\n` : `power: skipped, ${text}\n`);
    process.exit(isRequired ? 1 : 0);
  }
}
