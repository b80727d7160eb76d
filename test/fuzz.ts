// `npm run fuzz`: sends damaged, misplaced and random packets to brokers in this process, and evaluates as many damaged SQL statements and
// functions with hostile values, and parses as many damaged statements over streams. The number is the first argument or RUNS, 1,000,000 by default. SEED repeats a run.
import { Random } from './fuzz/random.ts';
import { fuzz } from './fuzz/run.ts';
import { fuzzSql } from './fuzz/sql.ts';
import { fuzzStreamSql } from './fuzz/stream-sql.ts';

const runs = Number(process.argv[2] ?? process.env.RUNS ?? 1_000_000);
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
if (!Number.isInteger(runs) || runs < 1 || !Number.isInteger(seed)) {
  process.stderr.write('usage: npm run fuzz -- [inputs], with SEED=<whole number> to repeat a run\n');
  process.exit(2);
}
process.stdout.write(`fuzz: ${runs} inputs, SEED=${seed}\n`);
const atMs = performance.now();
let toldMs = atMs;

try {
  const { ends, compared } = await fuzz({
    runs,
    seed,
    onProgress: (done) => {
      const nowMs = performance.now();
      if (nowMs - toldMs < 5_000) return;
      toldMs = nowMs;
      const heap = Math.round(process.memoryUsage().heapUsed / 2 ** 20);
      process.stdout.write(`  ${done} inputs, ${rate(done)} a second, ${heap} MiB of heap\n`);
    }
  });
  const told = Object.entries(ends).map(([end, count]) => `${count} ${end}`);
  process.stdout.write(
    `fuzz: passed, ${rate(runs)} inputs a second; ${told.join(', ')}; ${compared} packets compared\n`
  );
  const statements = fuzzSql({ runs, random: new Random(seed) });
  const kinds = Object.entries(statements).map(([end, count]) => `${count} ${end}`);
  process.stdout.write(`fuzz: passed, ${runs} SQL statements: ${kinds.join(', ')}\n`);
  const { valid, invalid } = fuzzStreamSql({ runs, random: new Random(seed) });
  process.stdout.write(`fuzz: passed, ${runs} statements over streams: ${valid} valid, ${invalid} invalid\n`);
} catch (error) {
  process.stdout.write(`fuzz: failed, repeat with SEED=${seed}\n${error instanceof Error ? error.stack : error}\n`);
  process.exitCode = 1;
}

function rate(done: number): number {
  return Math.round((done / (performance.now() - atMs)) * 1000);
}
