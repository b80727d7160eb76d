import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { claimOf } from '../../adapters/level/files/owner.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { Batch, type Store } from '../../lib/adapter.ts';
import { evalFlags, programOf, SOURCE_FLAGS, SOURCES, urlOf } from '../support/programs.ts';

const NOBODY = 65_534;
const home = mkdtempSync(join(tmpdir(), 'embermq-lock-'));
let folders = 0;
const newFolder = () => join(home, `${folders++}`);

/** Program of the other process: opens the folder it is sent, reports the outcome, and closes it or keeps it open. */
const PROGRAM = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { join, relative } from 'node:path';
  import { levelStore } from 'embermq/level';
  process.on('message', async ({ folder, isKept }) => {
    const store = levelStore(folder);
    const answer = await store.open().then(() => ({ code: 'open' }), ({ code, message }) => ({ code, message }));
    if (isKept) for (const name of readdirSync(folder)) readFileSync(join(folder, name)); // this releases LevelDB's lock
    else await store.close();
    process.send(answer);
  });
`;

interface Answer {
  readonly code: string;
  readonly message?: string;
}

function startProcess(): ChildProcess {
  return spawn(process.execPath, evalFlags(PROGRAM), { cwd: SOURCES, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

async function ask(other: ChildProcess, folder: string, isKept = false): Promise<Answer> {
  other.send({ folder, isKept });
  const [answer] = (await once(other, 'message')) as [Answer];
  return answer;
}

async function end(other: ChildProcess): Promise<void> {
  if (other.exitCode !== null || other.signalCode !== null) return;
  other.kill('SIGKILL');
  await once(other, 'exit');
}

function batchOf(key: string): Batch {
  const batch = new Batch();
  batch.put(Buffer.from(key), Buffer.from('1'));
  return batch;
}

async function keysOf(store: Store): Promise<string[]> {
  return (await store.read(Buffer.of(0), Buffer.of(0xff), 100_000)).map(({ key }) => key.toString());
}

async function opened(folder = newFolder()): Promise<{ folder: string; store: Store }> {
  const store = levelStore(folder);
  await store.open();
  await store.commit(batchOf('a'));
  return { folder, store };
}

/** Creates a folder, closes it, and returns what OWNER contained while it was open. */
async function closed(): Promise<{ folder: string; claim: string }> {
  const { folder, store } = await opened();
  const claim = readFileSync(join(folder, 'OWNER'), 'latin1');
  await store.close();
  return { folder, claim };
}

/** Advances the clock by a second. */
function oneSecondLater(t: TestContext): void {
  const nowMs = performance.now() + 1_001;
  t.mock.method(performance, 'now', () => nowMs);
}

/** Starts a worker thread that opens the folder and keeps it open until it is terminated. */
async function openInThread(folder: string): Promise<{ worker: Worker; code: string }> {
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     setInterval(() => {}, 1000);
     import(workerData.level)
       .then(({ levelStore }) => levelStore(workerData.folder).open())
       .then(() => parentPort.postMessage('open'), ({ code, message }) => parentPort.postMessage(code ?? message));`,
    { eval: true, execArgv: [...SOURCE_FLAGS], workerData: { level: urlOf('adapters/level/index.ts'), folder } }
  );
  const [code] = (await once(worker, 'message')) as [string];
  return { worker, code };
}

describe('a folder of a level store', { skip: existsSync('/proc/self/stat') ? false : 'there is no /proc' }, () => {
  let other: ChildProcess;

  before(() => {
    other = startProcess();
  });

  after(async () => {
    await end(other);
    rmSync(home, { recursive: true, force: true });
  });

  /** Actions that release the lock: the system releases it when the process closes any descriptor of the file. */
  const lockReleases: readonly [what: string, act: (folder: string) => void | Promise<void>][] = [
    [
      'a worker thread was refused it',
      async (folder) => {
        const { worker, code } = await openInThread(folder);
        assert.equal(code, 'STORE_LOCKED');
        await worker.terminate();
      }
    ],
    [
      'another copy of the package was refused it',
      async (folder) => {
        const copy = newFolder();
        for (const part of ['package.json', 'lib', 'adapters/level'])
          cpSync(join(SOURCES, part), join(copy, part), { recursive: true });
        symlinkSync(join(import.meta.dirname, '../../node_modules'), join(copy, 'node_modules'));
        const { levelStore: copied } = await import(
          pathToFileURL(join(copy, relative(SOURCES, programOf('adapters/level/index.ts')))).href
        );
        assert.notEqual(copied, levelStore);
        await assert.rejects(copied(folder).open(), { code: 'STORE_LOCKED' });
      }
    ],
    ['it was copied', (folder) => cpSync(folder, newFolder(), { recursive: true })],
    [
      'its files were read',
      (folder) => {
        for (const name of readdirSync(folder)) readFileSync(join(folder, name));
      }
    ]
  ];
  for (const [what, act] of lockReleases) {
    it(`refuses other processes after ${what}, and can be opened once it is closed`, async () => {
      const { folder, store } = await opened();
      await act(folder);
      const { code, message } = await ask(other, folder);
      assert.equal(code, 'STORE_LOCKED');
      assert.equal(message, `${folder}: in use by another process (${process.pid}). Stop it, or name another folder.`);
      await store.commit(batchOf('b'));
      await store.close();
      assert.ok(!existsSync(join(folder, 'OWNER')));
      assert.deepEqual(await ask(other, folder), { code: 'open' });
      await store.open();
      assert.deepEqual(await keysOf(store), ['a', 'b']);
      await store.close();
    });
  }

  it('refuses to open while another process that has read its files has it open, and opens once that process is killed', async () => {
    const { folder } = await closed();
    const holder = startProcess();
    try {
      assert.deepEqual(await ask(holder, folder, true), { code: 'open' });
      const store = levelStore(folder);
      const refused = {
        code: 'STORE_LOCKED',
        message: new RegExp(`^${folder}: in use by another process \\(${holder.pid}\\)`)
      };
      await assert.rejects(store.open(), refused);
      await assert.rejects(async () => store.repair?.(), refused);
      await end(holder);
      await store.open();
      assert.deepEqual(await keysOf(store), ['a']);
      await store.close();
    } finally {
      await end(holder);
    }
  });

  it('refuses to open while its owner lives whose descriptors may not be read, and opens once the owner is dead', async (t) => {
    if (process.geteuid?.() !== 0) return t.skip('only root can change its user id');
    const { folder } = await closed();
    // its parent never reaps it
    const parent = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore']
    });
    t.after(() => end(parent));
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(`${line}`);
    const isDead = () => /\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    writeFileSync(join(folder, 'OWNER'), await claimOf(pid, folder));
    for (const path of [folder, ...readdirSync(folder).map((name) => join(folder, name))])
      chownSync(path, NOBODY, NOBODY);
    chmodSync(home, 0o755);
    process.seteuid?.(NOBODY);
    try {
      const store = levelStore(folder);
      await assert.rejects(store.open(), { code: 'STORE_LOCKED', message: new RegExp(`another process \\(${pid}\\)`) });
      process.seteuid?.(0);
      process.kill(pid, 'SIGKILL');
      while (!isDead()) await new Promise((resolve) => setImmediate(resolve));
      process.seteuid?.(NOBODY);
      await store.open();
      await store.close();
    } finally {
      process.seteuid?.(0);
    }
  });

  it('opens in a worker thread after the thread that had it open was terminated', async () => {
    const { folder } = await closed();
    const first = await openInThread(folder);
    assert.equal(first.code, 'open');
    await assert.rejects(levelStore(folder).open(), {
      code: 'STORE_LOCKED',
      message: new RegExp(`another store of this process \\(${process.pid}\\)`)
    });
    await first.worker.terminate();
    const second = await openInThread(folder);
    assert.equal(second.code, 'open');
    await second.worker.terminate();
  });

  it('allows copying while it is in use, and the copy opens', async () => {
    const { folder, store } = await opened();
    const copies = [newFolder(), newFolder()];
    for (const copy of copies) cpSync(folder, copy, { recursive: true });
    assert.ok(existsSync(join(copies[0], 'OWNER')));
    const here = levelStore(copies[0]);
    await here.open();
    assert.deepEqual(await keysOf(here), ['a']);
    assert.deepEqual(await ask(other, copies[1]), { code: 'open' });
    await here.close();
    await store.close();
  });

  const leftovers: readonly [what: string, leave: (claim: string, owner: string) => void | Promise<void>][] = [
    ['this process, which does not have it', (claim, owner) => writeFileSync(owner, claim)],
    [
      'another process, which does not have it',
      async (_, owner) => writeFileSync(owner, await claimOf(other.pid as number, join(owner, '..')))
    ],
    ['a dead process', (claim, owner) => writeFileSync(owner, claim.replace(/^\d+/, '4194305'))],
    [
      'an earlier process whose id is in use again',
      (claim, owner) => writeFileSync(owner, claim.replace(/\d+\n.*\n$/, '1\n$&'))
    ],
    ['a process of an earlier boot', (claim, owner) => writeFileSync(owner, claim.replace(/\n./, '\n'))],
    ['another folder', (claim, owner) => writeFileSync(owner, claim.replace(/\n$/, '1\n'))],
    ['a truncated claim', (claim, owner) => writeFileSync(owner, claim.slice(0, -8))],
    ['an empty file', (_, owner) => writeFileSync(owner, '')],
    ['bytes that are not text', (_, owner) => writeFileSync(owner, Buffer.alloc(10_000, 0xff))],
    ['a broken symbolic link', (_, owner) => symlinkSync(join(home, 'no', 'where'), owner)]
  ];
  for (const [what, leave] of leftovers) {
    it(`opens with a leftover OWNER (${what}), and deletes it when it is closed`, async () => {
      const { folder, claim } = await closed();
      const owner = join(folder, 'OWNER');
      // this process lives and has LOCK open, but the claim does not match it
      const lock = openSync(join(folder, 'LOCK'), 'r');
      const isOpenHere = !/which does not have it/.test(what);
      if (!isOpenHere) closeSync(lock);
      try {
        await leave(claim, owner);
        const store = levelStore(folder);
        await store.open();
        assert.equal(readFileSync(owner, 'latin1'), claim);
        assert.deepEqual(await keysOf(store), ['a']);
        await store.close();
        assert.ok(!existsSync(owner));
      } finally {
        if (isOpenHere) closeSync(lock);
      }
    });
  }

  it('names an OWNER that cannot be written, and opens with the same store object once it can', async () => {
    const { folder } = await closed();
    const owner = join(folder, 'OWNER');
    mkdirSync(owner);
    const store = levelStore(folder);
    await assert.rejects(store.open(), {
      code: 'STORE_UNUSABLE',
      message: new RegExp(`^${folder}: the store cannot be opened: .*'${owner}'`)
    });
    rmdirSync(owner);
    await store.open();
    assert.deepEqual(await keysOf(store), ['a']);
    await store.close();
  });

  it('accepts commits, and deletes OWNER when it is closed, if OWNER was only touched', async (t) => {
    const { folder, store } = await opened();
    const owner = join(folder, 'OWNER');
    utimesSync(owner, 1, 1);
    oneSecondLater(t);
    await store.commit(batchOf('b'));
    await store.close();
    assert.equal(existsSync(owner), false);
  });

  it('names the folder in the place of OWNER, and the remedy', async () => {
    const { folder, store } = await opened();
    await store.close();
    mkdirSync(join(folder, 'OWNER'));
    await assert.rejects(store.open(), {
      code: 'STORE_UNUSABLE',
      message: /OWNER.* in the place of a file: remove it/
    });
    rmdirSync(join(folder, 'OWNER'));
    await store.open();
    await store.close();
  });

  it('refuses commits within a second after another process has opened it, until that process has ended', async (t) => {
    const { folder, store } = await opened();
    const owner = join(folder, 'OWNER');
    const holder = startProcess();
    try {
      renameSync(owner, `${owner}-hidden`);
      readFileSync(join(folder, 'LOCK'));
      assert.deepEqual(await ask(holder, folder, true), { code: 'open' });
      oneSecondLater(t);
      const refused =
        /OWNER is missing or has been replaced: another process has opened the folder\. Stop one of the two/;
      await assert.rejects(store.commit(batchOf('b')), refused);
      await assert.rejects(store.commit(batchOf('c')), refused);
      await store.close();
      assert.ok(existsSync(owner), 'the file of the other process stays');
      await assert.rejects(store.open(), { code: 'STORE_LOCKED' });
      await end(holder);
      await store.open();
      await store.commit(batchOf('d'));
      await store.close();
    } finally {
      await end(holder);
    }
  });
});
