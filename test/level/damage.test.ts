import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import type { Batch, Store } from '../../lib/adapter.ts';
import { BrokerError, checkStore } from '../../lib/index.ts';
import { readCommit, readCommits } from '../../lib/store/commits.ts';
import { Kind } from '../../lib/store/keys.ts';
import { createTestBroker, TestBroker } from '../../lib/testing/index.ts';

/** Number of damages of each kind to each kind of file. `DAMAGES=1000` makes a long run, `SEED=...` repeats a run. */
const DAMAGES = Number(process.env.DAMAGES ?? 2);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const home = mkdtempSync(join(tmpdir(), 'embermq-damage-'));
const whole = join(home, 'whole');
const damaged = join(home, 'damaged');

/** Digest of the content after each commit, and every record that was ever written. */
const states = new Map<number, string>();
let lastNumber = 0;
const written = new Set<string>();

after(() => rmSync(home, { recursive: true, force: true }));

before(async () => {
  const folder = join(home, 'live');
  const content = new Map<string, string>();
  const store = recordCommits(levelStore(folder), (batch) => {
    for (const [at, key] of batch.keys.entries()) {
      const [name, value] = [key.toString('hex'), batch.values[at]?.toString('hex')];
      if (value === undefined) content.delete(name);
      else content.set(name, value);
      if (value !== undefined) written.add(`${name}=${value}`);
    }
    const at = batch.keys.findIndex((key) => key[0] === Kind.commit);
    if (at < 0) return; // the first batch creates the store
    lastNumber = readCommit({ key: batch.keys[at], value: batch.values[at] as Buffer }).number;
    states.set(lastNumber, digestOf(content));
  });
  for (let life = 0; life < 4; life++) {
    const kit = await createTestBroker({ store, leakCheck: false });
    await runBroker(kit, life);
    await kit.clock.advance(100);
    // the last process is killed, so its records are in the log
    if (life === 3) cpSync(folder, whole, { recursive: true });
    await kit[Symbol.asyncDispose]();
  }
});

async function runBroker(kit: TestBroker, life: number): Promise<void> {
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

function recordCommits(store: Store, onCommitted: (batch: Batch) => void): Store {
  return {
    name: store.name,
    open: () => store.open(),
    close: () => store.close(),
    read: (from, to, limit) => store.read(from, to, limit),
    commit: (batch) => store.commit(batch).then(() => onCommitted(batch))
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

/** Returns a generator of numbers from 0 to 1 that repeats with the same seed. */
function randomFrom(seed: number): () => number {
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

/** Overwrites up to 512 bytes with zeros, as a failing disk does. */
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

describe(`a folder damaged by its disk (SEED=${SEED})`, () => {
  for (const [what, pattern] of Object.entries(FILES)) {
    for (const damage of [flip, cut, zero]) {
      it(`names the damaged file, or is complete up to some commit, after the damage "${damage.name}" to ${what}`, async (t) => {
        const random = randomFrom(SEED);
        const seen = { refused: 0, whole: 0, shortened: 0 };
        for (let n = 0; n < DAMAGES; n++) {
          rmSync(damaged, { recursive: true, force: true });
          cpSync(whole, damaged, { recursive: true });
          const names = readdirSync(damaged).filter((name) => pattern.test(name));
          assert.ok(names.length > 0);
          const name = names[Math.floor(random() * names.length)];
          const damageText = `${name}: ${damage(join(damaged, name), random)} (damage ${n})`;
          seen[await openDamaged(damageText, what === 'a log' && damage !== flip)]++;
        }
        t.diagnostic(JSON.stringify(seen));
      });
    }
  }
});

/** Opens the damaged folder. If it is refused, it must work after a repair. */
async function openDamaged(damageText: string, mayBeShortened: boolean): Promise<'refused' | 'whole' | 'shortened'> {
  const store = levelStore(damaged);
  try {
    await store.open();
    const content = await contentOf(store);
    const { last } = await readCommits(store);
    await store.close();
    const kit = await createTestBroker({ store, leakCheck: false });
    await kit[Symbol.asyncDispose]();
    assert.ok(
      last === lastNumber || mayBeShortened,
      `${damageText}: only complete up to commit ${last} of ${lastNumber}`
    );
    assert.equal(digestOf(content), states.get(last), `${damageText}: differs from the content after commit ${last}`);
    return last === lastNumber ? 'whole' : 'shortened';
  } catch (error) {
    await store.close();
    if (!(error instanceof BrokerError)) throw error;
    assert.ok(['STORE_DAMAGED', 'STORE_CORRUPT'].includes(error.code), `${damageText}: ${error.message}`);
    assert.ok(error.message.startsWith(`${damaged}: `), `${damageText}: ${error.message}`);
    await checkRepaired(store, damageText);
    return 'refused';
  }
}

/** Checks that the repaired folder contains only records that were written, that a broker runs on it, and that a check finds nothing. */
async function checkRepaired(store: Store, damageText: string): Promise<void> {
  const errors: string[] = [];
  const first = new TestBroker({ store, repairStore: true, leakCheck: false });
  first.broker.on('error', ({ error }) => errors.push(error.message));
  await first.broker.start();
  assert.ok(
    errors.length === 1 && errors[0].startsWith(`${damaged}: repaired; this is lost: `),
    `${damageText}: ${errors}`
  );
  await first[Symbol.asyncDispose]();
  await store.open();
  const content = await contentOf(store);
  await store.close();
  const known = [...content].filter(([key, value]) => written.has(`${key}=${value}`));
  assert.ok(
    known.length >= content.size / 2,
    `${damageText}: ${content.size - known.length} of ${content.size} records were never written`
  );
  const kit = await createTestBroker({ store, leakCheck: false });
  await (await kit.connect({ clientId: 'c0', clean: false, sessionExpiry: '1h' })).disconnect();
  await kit.broker.publish({ topic: 'q/0/0/x', qos: 1 });
  await kit[Symbol.asyncDispose]();
  assert.deepEqual((await checkStore(store)).findings, [], damageText);
}
