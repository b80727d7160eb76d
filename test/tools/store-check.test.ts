import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { BrokerError, checkStore, exportStore, importStore, memoryStore, storeStatistics } from '../../lib/index.ts';
import { writeCommit } from '../../lib/store/commits.ts';
import { beginJournal } from '../../lib/store/journal.ts';
import { COMMITS_KEPT, describeKey, FORMAT, Kind, numberKey } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';
import type { Entry, Store } from '../../lib/store/store.ts';
import { createTestBroker, TestBroker } from '../../lib/testing/index.ts';
import { RECORDS } from '../../lib/tools/record-kinds.ts';
import { ALL_KINDS, change, entriesOf, fill, laterVersion } from '../store/filled-store.ts';

let entries: readonly Entry[];

before(async () => {
  const store = memoryStore();
  await fill(store);
  entries = await entriesOf(store);
});

async function copy(): Promise<Store> {
  const store = memoryStore({ name: 'the copy' });
  await change(store, (batch) => {
    for (const { key, value } of entries) batch.put(key, value);
  });
  return store;
}

function of(kind: number, at = 0): Entry {
  const found = entries.filter(({ key }) => key[0] === kind)[at];
  assert.ok(found, `there is a record of kind ${kind}`);
  return found;
}

/** Returns a copy of the bytes with one bit changed. */
function flipped(value: Buffer): Buffer {
  const changed = Buffer.from(value);
  changed[changed.length >> 1] ^= 4;
  return changed;
}

/** Encodes a journal with the state of messages of a session, as it is in the store. */
function journal(): Entry {
  const { key, value } = of(Kind.flow);
  const draft = beginJournal(new Draft(), 1_000);
  draft.key(Kind.flow).raw(key, 1).value().raw(value.subarray(1, -4)).put();
  draft.unnest().put();
  return { key: draft.batch.keys[0], value: draft.batch.values[0] as Buffer };
}

/** Checks that a broker refuses the store, that another one repairs it, and that it is sound from then on. */
async function repairs(store: Store, refusal: RegExp): Promise<void> {
  await assert.rejects(createTestBroker({ ...ALL_KINDS, store }), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'STORE_CORRUPT');
    assert.match(error.message, refusal);
    return true;
  });
  const told: string[] = [];
  const kit = new TestBroker({ ...ALL_KINDS, store, repairStore: true, leakCheck: false });
  kit.broker.on('error', ({ error }) => told.push(error.message));
  await kit.broker.start();
  await kit.clock.advance('1m');
  assert.equal(told.length, 1);
  assert.match(told[0], /^the copy: repaired; this is lost: /);
  await kit[Symbol.asyncDispose]();
  const { findings } = await checkStore(store);
  assert.deepEqual(findings, []);
}

/** Returns the lines of an export. */
async function exported(store: Store): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of exportStore(store)) lines.push(line);
  return lines;
}

/** An amount of data that exceeds one batch of an import. */
async function large(): Promise<Store> {
  const store = await copy();
  await change(store, (batch) => {
    for (let n = 0; n < 2_000; n++) {
      const draft = new Draft();
      draft
        .key(Kind.table)
        .tail('numbers')
        .u8(0)
        .tail(`${n}`)
        .value()
        .bytes(Buffer.from(`${n}`))
        .put();
      batch.put(draft.batch.keys[0], draft.batch.values[0] as Buffer);
    }
  });
  return store;
}

/** Returns the contents of a store whose process crashed during an import. */
async function importCutShort(): Promise<Store> {
  const store = memoryStore();
  const commit = store.commit.bind(store);
  const rest = memoryStore();
  store.commit = async (batch) => {
    await commit(batch);
    store.commit = commit;
    const written = await store.read(Buffer.of(0), Buffer.alloc(8, 0xff), 1e9);
    await change(rest, (batch) => {
      for (const { key, value } of written) batch.put(key, value);
    });
  };
  await importStore(store, exportStore(await large()));
  return rest;
}

/** Record kinds that are absent once everything is written. */
const FLEETING = new Set(['garbage', 'journal']);

describe('checkStore', () => {
  it('finds nothing in the store of a stopped broker, for any kinds of records', async () => {
    const kinds = new Set(entries.map(({ key }) => key[0]));
    const unseen = Object.entries(RECORDS).filter(([name, { kind }]) => !FLEETING.has(name) && !kinds.has(kind));
    assert.deepEqual(unseen, []);
    const report = await checkStore(await copy());
    assert.deepEqual(report.findings, []);
    assert.equal(report.records, entries.length);
    assert.equal(report.name, 'the copy');
    assert.equal(report.isRepaired, false);
  });

  for (const [name, { kind }] of Object.entries(RECORDS)) {
    if (FLEETING.has(name)) continue;
    it(`names a record of kind ${name} with a changed bit, which a broker refuses and repairStore removes`, async () => {
      const store = await copy();
      const { key, value } = of(kind);
      await change(store, (batch) => batch.put(key, flipped(value)));
      const { findings } = await checkStore(store);
      assert.ok(
        findings.some(({ code, text }) => code === 'RECORD_UNREADABLE' && text.startsWith(describeKey(key))),
        JSON.stringify(findings)
      );
      // Queues are read when their clients connect.
      if (name !== 'segment') await repairs(store, /^the copy: .*(cannot be read|checksum is wrong)/);
      else {
        const { findings: repaired, isRepaired } = await checkStore(store, { repair: true });
        assert.deepEqual(
          repaired.map(({ code }) => code),
          ['RECORD_UNREADABLE', 'MESSAGES_MISSING']
        );
        assert.ok(isRepaired);
        assert.deepEqual((await checkStore(store)).findings, []);
      }
    });
  }

  it('names missing commits', async () => {
    const store = await copy();
    await change(store, (batch) => {
      for (const at of [3, 4, 7]) batch.delete(of(Kind.commit, at).key);
    });
    const { findings } = await checkStore(store);
    const number = RECORDS.commit.read(of(Kind.commit, 3), { nowMs: 0, wallMs: 0 }).number;
    assert.deepEqual(findings, [
      { code: 'COMMITS_MISSING', text: `commits ${number} to ${number + 1} are missing` },
      { code: 'COMMITS_MISSING', text: `commit ${number + 4} is missing` }
    ]);
    await repairs(store, /commits \d+ to \d+ are missing; commit \d+ is missing/);
  });

  for (const also of ['nothing else', 'another record', 'a journal to fold'] as const)
    it(`repairs a store that lacks the oldest commits that should be present, and ${also}`, async () => {
      const store = await copy();
      const last = 70_000;
      const { key, value } = journal();
      await change(store, (batch) => {
        const draft = new Draft();
        for (let number = last - COMMITS_KEPT + 1; number <= last; number++) writeCommit(draft, number, 1e12);
        for (const [at, commit] of draft.batch.keys.entries())
          if (at >= 2_500) batch.put(commit, draft.batch.values[at] as Buffer);
          else batch.delete(commit);
        if (also === 'another record') batch.put(of(Kind.retained).key, Buffer.from('garbage'));
        if (also === 'a journal to fold') batch.put(key, value);
      });
      await repairs(store, /commits 4465 to 6964 are missing/);
    });

  it('reports that the records of all commits are missing, which a broker refuses', async () => {
    const store = await copy();
    await change(store, (batch) => {
      for (const { key } of entries.filter(({ key }) => key[0] === Kind.commit)) batch.delete(key);
    });
    assert.deepEqual((await checkStore(store)).findings, [
      { code: 'COMMITS_MISSING', text: 'the records of all commits are missing' }
    ]);
    await repairs(store, /the records of all commits are missing\. Restore a copy/);
  });

  it('finds nothing in a store that was only opened', async () => {
    const store = memoryStore();
    const kit = await createTestBroker({ store, leakCheck: false });
    await kit[Symbol.asyncDispose]();
    assert.deepEqual((await checkStore(store)).findings, []);
    await (await createTestBroker({ store, leakCheck: false }))[Symbol.asyncDispose]();
  });

  it('does not remove the record of a commit that a repair has written to a damaged slot', async () => {
    const store = await copy();
    const last = 70_000;
    await change(store, (batch) => {
      const draft = new Draft();
      for (let number = last - COMMITS_KEPT + 1; number <= last; number++) writeCommit(draft, number, 1e12);
      for (const [at, key] of draft.batch.keys.entries()) {
        const slot = key.readUInt16BE(1);
        const isBad = slot >= 3_000 && slot < 6_000 && slot !== last % COMMITS_KEPT;
        batch.put(key, isBad ? Buffer.from('garbage') : (draft.batch.values[at] as Buffer));
      }
    });
    assert.ok((await checkStore(store, { repair: true })).isRepaired);
    assert.deepEqual((await checkStore(store)).findings, []);
  });

  it('names records of a missing session, and removes them', async () => {
    const store = await copy();
    const { key } = of(Kind.session);
    await change(store, (batch) => batch.delete(key));
    const { findings } = await checkStore(store);
    assert.deepEqual(
      findings.map(({ code, text }) => [code, text]),
      [
        [
          'SESSION_MISSING',
          `session ${key.readUIntBE(1, 6)} is missing; the store contains records of it: 2 subscriptions, the state of its messages, queued messages`
        ]
      ]
    );
    await repairs(store, /session \d+ is missing/);
    assert.equal((await storeStatistics(store)).kinds.segment.records, 0, 'its segments are removed');
  });

  it('restores a session whose state is missing with its whole queue', async () => {
    const store = await copy();
    const { key } = of(Kind.flow);
    await change(store, (batch) => batch.delete(key));
    assert.deepEqual((await checkStore(store)).findings, [
      {
        code: 'STATE_MISSING',
        text: `the state of messages of session ${key.readUIntBE(1, 6)} (client "reader") is missing`
      }
    ]);
    await checkStore(store, { repair: true });
    const kit = await createTestBroker({ ...ALL_KINDS, store, leakCheck: false });
    const got: string[] = [];
    const reader = await kit.connect({ clientId: 'reader', clean: false, sessionExpiry: '1h' });
    reader.on('message', ({ topic, payload }) => topic === 'to/reader/x' && got.push(`${payload}`));
    await kit.clock.advance(0);
    await kit[Symbol.asyncDispose]();
    // QoS 2 is sent later, because its packet ids are committed first.
    got.sort((a, b) => Number(a) - Number(b));
    assert.deepEqual(
      got,
      Array.from({ length: 20 }, (_, n) => `${n}`)
    );
  });

  it('counts missing queued messages, and continues with the others', async () => {
    const store = await copy();
    await change(store, (batch) => batch.delete(of(Kind.segment, 5).key));
    const number = of(Kind.segment).key.readUIntBE(1, 6);
    assert.deepEqual((await checkStore(store)).findings, [
      { code: 'MESSAGES_MISSING', text: `1 queued messages of session ${number} (client "reader") are missing` }
    ]);
    await checkStore(store, { repair: true });
    assert.deepEqual((await checkStore(store)).findings, []);
    assert.equal((await storeStatistics(store)).largestSessions[0].messages, 19);
  });

  it('names records of unknown kinds, and truncated keys', async () => {
    const store = await copy();
    await change(store, (batch) => {
      batch.put(Buffer.from([0x77, 1]), Buffer.from('?'));
      batch.put(Buffer.from([Kind.segment, 1]), Buffer.from('?'));
    });
    const { findings } = await checkStore(store, { repair: true });
    assert.deepEqual(
      findings.map(({ code, text }) => `${code} ${text}`),
      [
        'RECORD_UNREADABLE key 1301 cannot be read: the checksum is wrong',
        'KIND_UNKNOWN key 7701 is of a kind that this version does not know'
      ]
    );
    assert.deepEqual((await checkStore(store)).findings, []);
  });

  it('refuses a store of a later version, and one of another program, and does not change them', async () => {
    const later = await copy();
    await change(later, (batch) => {
      const draft = new Draft();
      draft
        .key(Kind.format)
        .value()
        .u8(FORMAT + 1)
        .f64(0)
        .put();
      batch.put(draft.batch.keys[0], draft.batch.values[0] as Buffer);
    });
    const before = await entriesOf(later);
    await assert.rejects(checkStore(later, { repair: true }), { code: 'STORE_TOO_NEW' });
    await assert.rejects(createTestBroker({ store: later, repairStore: true }), { code: 'STORE_TOO_NEW' });
    assert.deepEqual(await entriesOf(later), before);
    const other = memoryStore();
    await change(other, (batch) => batch.put(Buffer.from('key'), Buffer.from('value')));
    for (const repair of [false, true])
      await assert.rejects(checkStore(other, { repair }), { code: 'STORE_CORRUPT', message: /not a store of embermq/ });
    await assert.rejects(createTestBroker({ store: other, repairStore: true }), { code: 'STORE_CORRUPT' });
    assert.equal((await entriesOf(other)).length, 1);
  });

  for (const [name, { kind }] of Object.entries(RECORDS)) {
    if (name === 'garbage') continue;
    it(`refuses a store with a ${name} record of a later version, as a broker and an export do, and writes nothing`, async () => {
      const store = await copy();
      const journals = [journal(), { ...journal(), key: numberKey(Kind.journal, 1_001) }];
      const found = name === 'journal' ? journals[1] : of(kind);
      await change(store, (batch) => {
        batch.put(journals[0].key, journals[0].value);
        batch.put(found.key, laterVersion(found));
      });
      store.commit = () => assert.fail('the store has changed');
      const refused = {
        code: 'STORE_TOO_NEW',
        message: new RegExp(`^the copy: ${describeKey(found.key).replace(/[()]/g, '\\$&')}: the record has version 2`)
      };
      await assert.rejects(checkStore(store, { repair: true }), refused);
      await assert.rejects(exported(store), refused);
      if (name === 'segment') return; // queues are read when their clients connect
      for (const repairStore of [false, true])
        await assert.rejects(createTestBroker({ ...ALL_KINDS, store, repairStore }), refused);
    });
  }

  it('removes no record of an unknown kind from a store of a later version', async () => {
    const store = await copy();
    const draft = new Draft();
    draft.key(0x77).u8(1).value().put();
    const [key] = draft.batch.keys;
    await change(store, (batch) => batch.put(key, laterVersion({ key, value: draft.batch.values[0] as Buffer })));
    await assert.rejects(checkStore(store, { repair: true }), {
      code: 'STORE_TOO_NEW',
      message: /^the copy: key 7701: /
    });
  });

  it('writes nothing if nothing needs repair, and understands the contents of journals', async () => {
    const store = await copy();
    const { key, value } = journal();
    await change(store, (batch) => batch.put(key, value));
    const before = await entriesOf(store);
    const { findings, records } = await checkStore(store, { repair: true });
    assert.deepEqual(findings, []);
    assert.equal(records, entries.length + 1);
    assert.deepEqual(await entriesOf(store), before);
  });

  it('reports its progress', async () => {
    const seen: number[] = [];
    await checkStore(await copy(), { onProgress: ({ records }) => seen.push(records) });
    assert.equal(seen.at(-1), entries.length);
  });

  it('gives a new session another number than that of a lost one', async () => {
    const store = await copy();
    await change(store, (batch) => {
      for (const { key } of entries.filter(({ key }) => key[0] === Kind.session)) batch.delete(key);
    });
    const kit = new TestBroker({ ...ALL_KINDS, store, repairStore: true, leakCheck: false });
    kit.broker.on('error', () => undefined);
    await kit.broker.start();
    const reader = await kit.connect({ clientId: 'new', clean: false, sessionExpiry: '1h' });
    assert.equal(reader.connack.sessionPresent, false);
    await reader.disconnect();
    await kit[Symbol.asyncDispose]();
    const number = (await entriesOf(store)).find(({ key }) => key[0] === Kind.session)?.key.readUIntBE(1, 6);
    assert.ok((number as number) > of(Kind.session, 1).key.readUIntBE(1, 6));
    assert.deepEqual((await checkStore(store)).findings, []);
  });
});

describe('A store of another implementation that does not open', () => {
  for (const [code, isRepairable] of [
    ['STORE_DAMAGED', true],
    ['STORE_UNUSABLE', false],
    ['STORE_LOCKED', false]
  ] as const)
    it(`asks the store ${isRepairable ? '' : 'not '}to repair itself when it fails with ${code}`, async () => {
      for (const run of [
        (store: Store) => checkStore(store, { repair: true }),
        async (store: Store) => {
          const kit = new TestBroker({ ...ALL_KINDS, store, repairStore: true, leakCheck: false });
          kit.broker.on('error', () => undefined);
          await kit.broker.start();
          await kit[Symbol.asyncDispose]();
        }
      ]) {
        const store = await copy();
        const { open } = store;
        let repairs = 0;
        store.open = () => Promise.reject(new BrokerError(code, 'the copy: not now'));
        store.repair = async () => {
          repairs++;
          store.open = open;
        };
        if (isRepairable) await run(store);
        else await assert.rejects(run(store), { code });
        assert.equal(repairs, isRepairable ? 1 : 0);
      }
    });
});

describe('storeStatistics', () => {
  it('counts records by kind and names the sessions that use the most space', async () => {
    const { kinds, largestSessions, records, bytes } = await storeStatistics(await copy());
    assert.equal(records, entries.length);
    assert.equal(
      bytes,
      entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
    );
    assert.equal(kinds.session.records, 2);
    assert.equal(kinds.subscription.records, 4);
    assert.equal(kinds.retained.records, 20);
    assert.deepEqual(
      largestSessions.map(({ clientId, subscriptions, messages }) => [clientId, subscriptions, messages]),
      [
        ['reader', 2, 20],
        ['other', 2, 0]
      ]
    );
    assert.equal((await storeStatistics(await copy(), { sessions: 1 })).largestSessions.length, 1);
    const store = await copy();
    await change(store, (batch) => batch.delete(of(Kind.session).key));
    const left = (await storeStatistics(store)).largestSessions;
    assert.equal(left.length, largestSessions.length - 1, 'records of an ended session are not counted');
  });

  it('refuses unreadable records and names them', async () => {
    const flow = of(Kind.flow);
    for (const [value, code] of [
      [flipped(flow.value), 'STORE_CORRUPT'],
      [laterVersion(flow), 'STORE_TOO_NEW']
    ] as const) {
      const store = await copy();
      await change(store, (batch) => batch.put(flow.key, value));
      await assert.rejects(storeStatistics(store), {
        code,
        message:
          code === 'STORE_CORRUPT'
            ? /^the copy: the state of messages of session \d+: .*repair/
            : /^the copy: the state/
      });
    }
  });
});

describe('exportStore and importStore', () => {
  it('copies every record to another store', async () => {
    const other = memoryStore();
    const { records } = await importStore(other, exportStore(await copy()));
    assert.equal(records, entries.length);
    assert.deepEqual(await entriesOf(other), entries);
  });

  it('shows the contents of records', async () => {
    const lines = (await exported(await copy())).map(
      (line) => JSON.parse(line) as { kind: string; content?: Record<string, unknown> }
    );
    const retained = lines.find(({ kind, content }) => kind === 'retained' && content?.topic === 'kept/3');
    assert.equal(retained?.content?.payload, Buffer.from('3').toString('base64'));
    assert.deepEqual(lines.find(({ kind }) => kind === 'table')?.content, {
      table: 'colours',
      key: 'sky',
      value: 'blue'
    });
  });

  it('refuses to import into a store with records', async () => {
    await assert.rejects(importStore(await copy(), exportStore(await copy())), { code: 'STORE_NOT_EMPTY' });
  });

  it('leaves nothing that a broker would start on when a line is invalid, and names the line', async () => {
    const lines = await exported(await copy());
    const wrong: [string, RegExp][] = [
      ['{', /^line 5: not valid JSON/],
      ['null', /^line 5: a record needs the strings "key" and "value"/],
      [JSON.stringify({ ...JSON.parse(lines[4]), value: 'AAAA' }), /^line 5: .*checksum/],
      [JSON.stringify({ key: '//8=', value: '' }), /^line 5: .*unknown kind/]
    ];
    for (const [line, message] of wrong) {
      const store = memoryStore();
      await assert.rejects(importStore(store, lines.with(4, line)), { code: 'IMPORT_INVALID', message });
    }
    await assert.rejects(importStore(memoryStore(), []), { code: 'IMPORT_INVALID' });
  });

  it('refuses an export that ends early or continues after its last line', async () => {
    const lines = await exported(await copy());
    for (const count of [1, 20, lines.length - 1])
      await assert.rejects(importStore(memoryStore(), lines.slice(0, count)), {
        code: 'IMPORT_INVALID',
        message: /the export is incomplete: the format record, its last line, is missing/
      });
    await assert.rejects(importStore(memoryStore(), [...lines, '', lines[3]]), {
      code: 'IMPORT_INVALID',
      message: `line ${lines.length + 2}: unexpected line after the format record, which is the last line of an export`
    });
  });

  it('refuses an export in which a line is missing or duplicated, unless its count is removed', async () => {
    const lines = await exported(await copy());
    const at = lines.findIndex((line) => line.includes('"kind":"retained"'));
    const without = lines.toSpliced(at, 1);
    for (const wrong of [without, lines.toSpliced(at, 0, lines[at])])
      await assert.rejects(importStore(memoryStore(), wrong), {
        code: 'IMPORT_INVALID',
        message: `line ${wrong.length}: the export has ${lines.length} records, but ${wrong.length} were read: lines are missing or duplicated. If this is intended, remove "records" from this line`
      });
    const { records: _, ...last } = JSON.parse(lines.at(-1) as string);
    const { records } = await importStore(memoryStore(), [...without.slice(0, -1), JSON.stringify(last)]);
    assert.equal(records, lines.length - 1);
  });

  it('names the line of a record that a later version has written', async () => {
    const lines = await exported(await copy());
    const record = (entry: Entry, value: Buffer) =>
      JSON.stringify({ key: entry.key.toString('base64'), value: value.toString('base64') });
    const session = of(Kind.session);
    const format = of(Kind.format);
    const draft = new Draft();
    draft
      .key(Kind.format)
      .value()
      .u8(FORMAT + 1)
      .f64(0)
      .put();
    for (const [at, line, message] of [
      [4, record(session, laterVersion(session)), /^line 5: session \d+: the record has version 2/],
      [
        lines.length - 1,
        record(format, laterVersion(format)),
        /^line \d+: the format record: the record has version 2/
      ],
      [lines.length - 1, record(format, draft.batch.values[0] as Buffer), /^line \d+: written by a later version/]
    ] as const)
      await assert.rejects(importStore(memoryStore(), lines.with(at, line)), { code: 'STORE_TOO_NEW', message });
  });

  it('leaves nothing when an invalid line follows lines that were already written', async () => {
    const store = memoryStore();
    let commits = 0;
    const commit = store.commit.bind(store);
    store.commit = (batch) => {
      commits++;
      return commit(batch);
    };
    const lines = await exported(await large());
    await assert.rejects(importStore(store, lines.with(1_200, '{')), { message: /^line 1201: not valid JSON/ });
    assert.ok(commits > 0, 'some records were written');
    assert.deepEqual(await entriesOf(store), []);
    await importStore(store, lines);
    assert.deepEqual(await entriesOf(store), await entriesOf(await large()));
  });

  it('recognizes the remains of an incomplete import, and imports over them', async () => {
    const rest = await importCutShort();
    const unfinished = {
      code: 'IMPORT_UNFINISHED',
      message:
        'memory: the import into this store was interrupted. Import again, which starts from the beginning, or delete the store.'
    };
    const before = await entriesOf(rest);
    for (const repair of [false, true]) await assert.rejects(checkStore(rest, { repair }), unfinished);
    for (const repairStore of [false, true])
      await assert.rejects(createTestBroker({ store: rest, repairStore }), unfinished);
    await assert.rejects(storeStatistics(rest), unfinished);
    await assert.rejects(exported(rest), unfinished);
    assert.deepEqual(await entriesOf(rest), before);
    const { records } = await importStore(rest, exportStore(await copy()));
    assert.equal(records, entries.length);
    assert.deepEqual(await entriesOf(rest), entries);
  });

  it('requires the import to be repeated if the data it has written cannot be removed', async () => {
    const store = memoryStore();
    const commit = store.commit.bind(store);
    store.commit = async (batch) => {
      await commit(batch);
      store.commit = () => Promise.reject(new Error('the disk is full'));
    };
    await assert.rejects(importStore(store, exportStore(await large())), /the disk is full/);
    store.commit = commit;
    await assert.rejects(checkStore(store), { code: 'IMPORT_UNFINISHED' });
    await importStore(store, exportStore(await copy()));
    assert.deepEqual(await entriesOf(store), entries);
  });

  it('ignores a byte order mark at the beginning', async () => {
    const [first, ...lines] = await exported(await copy());
    const { records } = await importStore(memoryStore(), [`\uFEFF${first}`, ...lines]);
    assert.equal(records, entries.length);
  });

  it('refuses to export unreadable records, and names them', async () => {
    const store = await copy();
    const { key, value } = of(Kind.retained);
    await change(store, (batch) => batch.put(key, flipped(value)));
    await assert.rejects(exported(store), {
      code: 'STORE_CORRUPT',
      message:
        /^the copy: retained message "kept\/0": the checksum is wrong\. Restore a copy, or continue .*store check --repair/
    });
  });
});

describe('A store that is in use', () => {
  const changes: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    checkStore: (store) => checkStore(store),
    'checkStore with repair': (store) => checkStore(store, { repair: true }),
    storeStatistics: (store) => storeStatistics(store),
    exportStore: (store) => exported(store),
    importStore: async (store) => importStore(store, exportStore(await copy()))
  };

  for (const [name, run] of Object.entries(changes)) {
    it(`refuses the store to ${name} while a broker has it open, and the broker continues`, async () => {
      const store = memoryStore({ name: 'the only' });
      await using kit = await createTestBroker({ store });
      await assert.rejects(run(store), {
        code: 'STORE_IN_USE',
        message: /^the only: a broker in this process uses the store\. Stop that broker first/
      });
      await kit.broker.publish({ topic: 'a', qos: 1, retain: true });
    });

    it(`refuses the store to a broker and to checkStore while ${name} uses it, and releases it afterwards`, async () => {
      const store = memoryStore({ name: 'the only' });
      const open = store.open.bind(store);
      const refused: unknown[] = [];
      store.open = async () => {
        store.open = open;
        for (const other of [() => createTestBroker({ store }), () => checkStore(store)])
          refused.push(
            await other().then(
              () => undefined,
              ({ code, message }) => `${code} ${message}`
            )
          );
        await open();
      };
      await run(store);
      assert.equal(refused.length, 2);
      for (const text of refused)
        assert.match(
          `${text}`,
          /^STORE_IN_USE the only: it is being (checked|counted|exported|imported into) in this process\. Wait/
        );
      await using kit = await createTestBroker({ ...ALL_KINDS, store });
      await kit.broker.publish({ topic: 'a', qos: 1, retain: true });
    });
  }

  it('releases the store when an export is abandoned', async () => {
    const store = await copy();
    for await (const line of exportStore(store)) {
      assert.ok(line);
      break;
    }
    assert.deepEqual((await checkStore(store)).findings, []);
  });

  it('releases the store when a check has failed', async () => {
    const store = memoryStore();
    const { open } = store;
    store.open = () => Promise.reject(new Error('not now'));
    await assert.rejects(checkStore(store), /not now/);
    store.open = open;
    await checkStore(store);
  });
});
