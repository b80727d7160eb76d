import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FileWatch } from '../../adapters/net/file-watch.ts';
import { systemClock } from '../../lib/index.ts';

let directory: string;
let watches: FileWatch[];
/** The timers of a watch do not keep the process alive; this one does. */
let alive: NodeJS.Timeout;

beforeEach(() => {
  alive = setInterval(() => {}, 1000);
  directory = mkdtempSync(join(tmpdir(), 'embermq-'));
  watches = [];
});

afterEach(() => {
  clearInterval(alive);
  for (const watch of watches) watch.close();
  rmSync(directory, { recursive: true });
});

/** Watch files, and get a promise for the first report. */
function reportOf(...files: string[]): Promise<void> {
  return new Promise((resolve) => {
    const watch = new FileWatch(systemClock, resolve);
    watches.push(watch);
    watch.watch(files, 5);
  });
}

function fileOf(name: string, content = 'before'): string {
  const file = join(directory, name);
  writeFileSync(file, content);
  return file;
}

describe('the watch of files', { timeout: 20_000 }, () => {
  it('detects a change right after the start of the watch', async () => {
    const reports = Array.from({ length: 50 }, (_, number) => {
      const file = fileOf(`${number}`);
      const report = reportOf(file);
      writeFileSync(file, 'after it');
      return report;
    });
    await Promise.all(reports);
  });

  it('detects a file that is replaced, removed or created later', async () => {
    const [replaced, removed, late] = [fileOf('replaced'), fileOf('removed'), join(directory, 'folder', 'late')];
    const other = fileOf('other');
    const reports = [replaced, removed, late].map((file) => reportOf(file));
    renameSync(other, replaced);
    rmSync(removed);
    mkdirSync(join(directory, 'folder'));
    writeFileSync(late, '');
    await Promise.all(reports);
  });

  it('reports again after another change, and nothing without a change or after its close', async () => {
    const [file, untouched, closed] = [fileOf('file'), fileOf('untouched'), fileOf('closed')];
    let count = 0;
    let reported = () => {};
    const watch = new FileWatch(systemClock, () => {
      count += 1;
      reported();
    });
    watches.push(watch);
    watch.watch([file], 5);
    let silentReports = 0;
    for (const silent of [untouched, closed]) {
      const other = new FileWatch(systemClock, () => {
        silentReports += 1;
      });
      watches.push(other);
      other.watch([silent], 5);
    }
    watches.at(-1)?.close();
    writeFileSync(closed, 'changed');
    for (const expected of [1, 2, 3]) {
      const next = new Promise<void>((resolve) => {
        reported = resolve;
      });
      writeFileSync(file, `${expected}`);
      await next;
      assert.equal(count, expected);
    }
    assert.equal(silentReports, 0);
  });
});
