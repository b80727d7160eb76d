import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker } from 'embermq';
import { levelStore } from 'embermq/level';
import { program } from './support/brokers.ts';
import type { Started } from './support/started.ts';

/** The time and memory that a broker needs to start in a new process on the persisted state of another broker. */
export interface Row extends Started {
  readonly sessions: number;
  readonly subscriptions: number;
  readonly messages: number;
  /** Bytes of heap per session, in addition to a broker with an empty store. */
  readonly sessionBytes: number;
}

/** Start on an empty store, on offline sessions with one subscription and `messages` queued messages each, and on sessions with ten subscriptions. */
export async function run(sessions: number, messages: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [count, subscriptions, queued] of [
    [0, 0, 0],
    [sessions, 1, messages],
    [sessions, 10, 0]
  ]) {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
    try {
      await fill(folder, count, subscriptions, queued);
      const output = execFileSync(process.execPath, ['--expose-gc', program('support/started.js'), folder]);
      const started = JSON.parse(output.toString()) as Started;
      const sessionBytes = count === 0 ? 0 : (started.heapBytes - rows[0].heapBytes) / count;
      rows.push({ ...started, sessions: count, subscriptions, messages: count * queued, sessionBytes });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  return rows;
}

async function fill(folder: string, sessions: number, subscriptions: number, messages: number): Promise<void> {
  const broker = createBroker({ store: levelStore(folder), allowAnonymous: true });
  await broker.start();
  for (let at = 0; at < sessions; at++) {
    const client = await broker.connect({ clientId: `client-${at}`, clean: false, sessionExpiry: '1d' });
    const filters = Array.from({ length: subscriptions }, (_, i) => ({ topic: `start/${at}/${i}`, qos: 1 as const }));
    await client.subscribe(filters);
    await client.disconnect();
  }
  for (let n = 0; n < messages; n++) {
    let last: unknown;
    for (let at = 0; at < sessions; at++) {
      last = broker.publish({ topic: `start/${at}/0`, payload: PAYLOAD, qos: 1 });
      if (at % 1000 === 999) await last;
    }
    await last;
  }
  await broker.stop();
}

const PAYLOAD = Buffer.alloc(64, 7);

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    'A broker starts in a new process on the state of offline sessions. `resident` is the memory of the whole process right after the start, and `files` the part of it that is mapped files (Node, libraries, tables of LevelDB). `bytes a session` is the heap in addition to that of the first row, after a garbage collection. The goals are one million queued messages in 10,000 sessions in 2 s and 100 MB, and 3,000 bytes per session with 10 subscriptions.',
    '',
    '| sessions | subscriptions each | queued | start ms | resident MB | files MB | bytes a session |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(({ sessions, subscriptions, messages, startMs, residentBytes, fileBytes, sessionBytes }) => {
      const cells = [sessions, subscriptions, messages, startMs, residentBytes / 1e6, fileBytes / 1e6, sessionBytes];
      return `| ${cells.map((cell) => Math.round(cell).toLocaleString('en-US')).join(' | ')} |`;
    })
  ].join('\n');
}
