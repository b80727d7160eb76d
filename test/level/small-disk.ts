import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** undefined: none can be mounted here, and the test is left out. */
export function smallDisk(t: TestContext, size: string): { path: string; [Symbol.dispose](): void } | undefined {
  const path = mkdtempSync(join(tmpdir(), 'embermq-full-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'pipe' });
  } catch (error) {
    rmSync(path, { recursive: true });
    t.skip(`no small disk can be mounted here: ${(error as Error).message.trim()}`);
    return undefined;
  }
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', path]);
      rmSync(path, { recursive: true });
    }
  };
}

/** Write until there is no room for a byte. */
export function fill(file: string): void {
  for (let size = 1_048_576; size >= 1; size = Math.floor(size / 2)) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // what there was room for is written
    }
  }
}
