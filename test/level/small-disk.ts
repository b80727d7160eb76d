import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Mounts a file system of this size, such as `4m`. Returns undefined if none can be mounted; then the test is skipped. */
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

/** Writes a file until the disk has no byte left. */
export function fill(file: string): void {
  for (let size = 1_048_576; size >= 1; size = Math.floor(size / 2)) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // a smaller piece may still fit
    }
  }
}
