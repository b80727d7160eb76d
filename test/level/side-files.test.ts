import assert from 'node:assert/strict';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { levelStore } from '../../adapters/level/index.ts';
import { BrokerError, checkStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { PERSISTENT } from '../store/failing-support.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-side-'));
const whole = join(home, 'whole');
let folders = 0;

after(() => rmSync(home, { recursive: true, force: true }));

before(async () => {
  const live = join(home, 'live');
  for (let life = 0; life < 3; life++) {
    await using kit = await createTestBroker({ store: levelStore(live), leakCheck: false });
    if (life === 0) {
      const client = await kit.connect({ clientId: 'away', ...PERSISTENT });
      await client.subscribe({ topic: 'q', qos: 1 });
      await client.disconnect();
    }
    await kit.broker.publish('q', `${life}`, { qos: 1 });
    await kit.broker.publish(`r/${life}`, 'retained', { qos: 1, retain: true });
    await kit.clock.advance(100);
    // the last process is killed
    if (life === 2) cpSync(live, whole, { recursive: true });
  }
});

/** Files without records: the lock of LevelDB and its own log messages. */
const FILES = ['LOCK', 'LOG', 'LOG.old'];

type Damages = Readonly<Record<string, (file: string) => void>>;

const DAMAGES: Damages = {
  'has an extra byte': (file) => appendFileSync(file, Buffer.of(0xff)),
  'contains zeros': (file) => writeFileSync(file, Buffer.alloc(10_000)),
  'is missing': (file) => rmSync(file),
  'is a folder': (file) => {
    rmSync(file);
    mkdirSync(file);
  },
  'is a broken symbolic link': (file) => {
    rmSync(file);
    symlinkSync(join(home, 'no', 'where'), file);
  }
};

/** Only for files with content; LOCK is empty. */
const DAMAGES_OF_TEXT: Damages = {
  'has a flipped bit in each byte': (file) =>
    writeFileSync(
      file,
      readFileSync(file).map((byte) => byte ^ 0x10)
    ),
  'is truncated': (file) => truncateSync(file, Math.floor(readFileSync(file).length / 2)),
  'is empty': (file) => truncateSync(file)
};

/** Damages after which LevelDB cannot lock the folder. */
const REFUSED = new Set(['LOCK is a folder', 'LOCK is a broken symbolic link']);

describe('a folder with a damaged file that contains no records', () => {
  for (const name of FILES)
    for (const [what, damage] of Object.entries(name === 'LOCK' ? DAMAGES : { ...DAMAGES, ...DAMAGES_OF_TEXT })) {
      const isRefused = REFUSED.has(`${name} ${what}`);
      it(`${isRefused ? 'names the file, and loses nothing,' : 'opens with all its records'} if ${name} ${what}`, async () => {
        const folder = join(home, `${folders++}`);
        cpSync(whole, folder, { recursive: true });
        const file = join(folder, name);
        assert.equal(statSync(file).size > 0, name !== 'LOCK');
        damage(file);
        if (isRefused) {
          await assert.rejects(levelStore(folder).open(), (error) => {
            assert.ok(error instanceof BrokerError && error.code === 'STORE_UNUSABLE');
            assert.ok(
              error.message.startsWith(`${folder}: the store cannot be opened: `) && error.message.includes(file)
            );
            return true;
          });
          rmSync(file, { recursive: true });
        }
        assert.deepEqual((await checkStore(levelStore(folder))).findings, []);
        await using kit = await createTestBroker({ store: levelStore(folder), leakCheck: false });
        const got: string[] = [];
        const client = await kit.connect({ clientId: 'away', ...PERSISTENT });
        client.on('message', ({ payload }) => got.push(`${payload}`));
        await kit.clock.advance(100);
        assert.deepEqual(got, ['0', '1', '2']);
        const retained: string[] = [];
        for await (const { topic } of kit.broker.retained.match('r/#')) retained.push(topic);
        assert.deepEqual(retained.sort(), ['r/0', 'r/1', 'r/2']);
      });
    }
});
