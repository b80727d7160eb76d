import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { type Batch, BrokerError, checkStore, type Store } from '../../lib/index.ts';
import { readCommit, readCommits } from '../../lib/store/commits.ts';
import { Kind } from '../../lib/store/keys.ts';
import { createTestBroker, TestBroker } from '../../lib/testing/index.ts';

/** Damages of each kind to each kind of file; `DAMAGES=1000` for a long run, `SEED=...` to have one again. */
const DAMAGES = Number(process.env.DAMAGES ?? 4);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const home = mkdtempSync(join(tmpdir(), 'embermq-damage-'));
const whole = join(home, 'whole');
const damaged = join(home, 'damaged');

/** What there was after each commit, and every record that there ever was. */
const states = new Map<number, string>();
let lastNumber = 0;
const written = new Set<string>();

after(() => rmSync(home, { recursive: true, force: true }));

before(async () => {
  const folder = join(home, 'live');
  const content = new Map<string, string>();
  const store = recorded(levelStore(folder), (batch) => {
    for (const [at, key] of batch.keys.entries()) {
      const [name, value] = [key.toString('hex'), batch.values[at]?.toString('hex')];
      if (value === undefined) content.delete(name);
      else content.set(name, value);
      if (value !== undefined) written.add(`${name}=${value}`);
    }
    const at = batch.keys.findIndex((key) => key[0] === Kind.commit);
    if (at < 0) return; // the first one makes the store
    lastNumber = readCommit({ key: batch.keys[at], value: batch.values[at] as Buffer }).number;
    states.set(lastNumber, digestOf(content));
  });
  for (let life = 0; life < 4; life++) {
    const kit = await createTestBroker({ store, leakCheck: false });
    await live(kit, life);
    await kit.clock.advance(100);
    // the last one dies: what it wrote is in the log
    if (life === 3) cpSync(folder, whole, { recursive: true });
    await kit[Symbol.asyncDispose]();
  }
});

async function live(kit: TestBroker, life: number): Promise<void> {
  for (let n = 0; n < 5; n++) {
    const client = await kit.connect({ clientId: `c${n}`, clean: false, sessionExpiry: '1h' });
    await client.subscribe({ topic: `q/${n}/${life}/#`, qos: 1 });
    await client.disconnect();
  }
  for (let n = 0; n < 30; n++) {
    await kit.broker.publish({ topic: `r/${n}`, payload: `${life} ${Math.sin(n)}`, qos: 1, retain: true });
    await kit.broker.publish({
      topic: `q/${n % 5}/0/x`,
      payload: Buffer.alloc(1_000, `${life} ${Math.cos(n)}`),
      qos: 1
    });
  }
}

function recorded(store: Store, kept: (batch: Batch) => void): Store {
  return {
    name: store.name,
    open: () => store.open(),
    close: () => store.close(),
    read: (from, to, limit) => store.read(from, to, limit),
    commit: (batch) => store.commit(batch).then(() => kept(batch))
  };
}

function digestOf(content: ReadonlyMap<string, string>): string {
  const lines = [...content].map(([key, value]) => `${key}=${value}`);
  return createHash('sha1').update(lines.sort().join('\n')).digest('hex');
}

async function contentOf(store: Store): Promise<Map<string, string>> {
  const entries = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
  return new Map(entries.map(({ key, value }) => [key.toString('hex'), value.toString('hex')]));
}

/** Numbers from 0 to 1 that come again with the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function flip(file: string, random: () => number): string {
  const bytes = readFileSync(file);
  const at = Math.floor(random() * bytes.length);
  const bit = Math.floor(random() * 8);
  bytes[at] ^= 1 << bit;
  writeFileSync(file, bytes);
  return `bit ${bit} of byte ${at} changed`;
}

function cut(file: string, random: () => number): string {
  const length = Math.floor(random() * readFileSync(file).length);
  truncateSync(file, length);
  return `cut to ${length} bytes`;
}

/** Bytes that a disk gives instead of others. */
function zero(file: string, random: () => number): string {
  const bytes = readFileSync(file);
  const at = Math.floor(random() * bytes.length);
  const end = Math.min(bytes.length, at + Math.floor(random() * 512));
  bytes.fill(0, at, end);
  writeFileSync(file, bytes);
  return `bytes ${at} to ${end} are zero`;
}

const FILES: Readonly<Record<string, RegExp>> = {
  CURRENT: /^CURRENT$/,
  'a manifest': /^MANIFEST-/,
  'a log': /\.log$/,
  'a table': /\.ldb$/
};

describe(`a folder that a disk has spoiled (SEED=${SEED})`, () => {
  for (const [what, pattern] of Object.entries(FILES)) {
    for (const damage of [flip, cut, zero]) {
      it(`is refused by name, or sound up to some commit, when ${damage.name} has hit ${what}`, async (t) => {
        const random = randomOf(SEED);
        const seen = { refused: 0, whole: 0, shortened: 0 };
        for (let n = 0; n < DAMAGES; n++) {
          rmSync(damaged, { recursive: true, force: true });
          cpSync(whole, damaged, { recursive: true });
          const names = readdirSync(damaged).filter((name) => pattern.test(name));
          assert.ok(names.length > 0);
          const name = names[Math.floor(random() * names.length)];
          const how = `${name}: ${damage(join(damaged, name), random)} (damage ${n})`;
          seen[await outcome(how, what === 'a log' && damage !== flip)]++;
        }
        t.diagnostic(JSON.stringify(seen));
      });
    }
  }
});

/** What a broker does with the folder; one that is refused goes on when it is repaired. */
async function outcome(how: string, mayBeShortened: boolean): Promise<'refused' | 'whole' | 'shortened'> {
  const store = levelStore(damaged);
  try {
    await store.open();
    const content = await contentOf(store);
    const { last } = await readCommits(store);
    await store.close();
    const kit = await createTestBroker({ store, leakCheck: false });
    await kit[Symbol.asyncDispose]();
    assert.ok(last === lastNumber || mayBeShortened, `${how}: what there was after commit ${last} of ${lastNumber}`);
    assert.equal(digestOf(content), states.get(last), `${how}: not what there was after commit ${last}`);
    return last === lastNumber ? 'whole' : 'shortened';
  } catch (error) {
    await store.close();
    if (!(error instanceof BrokerError)) throw error;
    assert.ok(['STORE_DAMAGED', 'STORE_CORRUPT'].includes(error.code), `${how}: ${error.message}`);
    assert.ok(error.message.startsWith(`${damaged}: `), `${how}: ${error.message}`);
    await goesOn(store, how);
    return 'refused';
  }
}

/** Repaired, it has nothing but what was once written; a broker lives on it, and there is nothing to be found any more. */
async function goesOn(store: Store, how: string): Promise<void> {
  const told: string[] = [];
  const first = new TestBroker({ store, repairStore: true, leakCheck: false });
  first.broker.on('error', ({ error }) => told.push(error.message));
  await first.broker.start();
  assert.ok(told.length === 1 && told[0].startsWith(`${damaged}: going on without what is lost: `), `${how}: ${told}`);
  await first[Symbol.asyncDispose]();
  await store.open();
  const content = await contentOf(store);
  await store.close();
  const known = [...content].filter(([key, value]) => written.has(`${key}=${value}`));
  assert.ok(
    known.length >= content.size / 2,
    `${how}: ${content.size - known.length} records of ${content.size} are new`
  );
  const kit = await createTestBroker({ store, leakCheck: false });
  await (await kit.connect({ clientId: 'c0', clean: false, sessionExpiry: '1h' })).disconnect();
  await kit.broker.publish({ topic: 'q/0/0/x', qos: 1 });
  await kit[Symbol.asyncDispose]();
  assert.deepEqual((await checkStore(store)).findings, [], how);
}
