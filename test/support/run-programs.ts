import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { JOINED, programOf, SOURCE_FLAGS } from './programs.ts';
import type { PageRun } from './run-snippets.ts';

/** A program of a page. */
interface Program {
  /** The page of the program, or its name. */
  readonly page: string;
  readonly code: string;
}

/**
 * Runs programs one after the other in a separate process. Returns the output of those of each page.
 * @param isComplete true if a program must print nothing to standard error, and leave nothing open
 */
export async function runPrograms(programs: readonly Program[], isComplete = false): Promise<Record<string, PageRun>> {
  const folder = mkdtempSync(join(JOINED, 'programs-'));
  const work = mkdtempSync(join(tmpdir(), 'embermq-snippets-'));
  try {
    const files: Record<string, string[]> = {};
    for (const [at, { page, code }] of programs.entries()) {
      const file = join(folder, `${at}.ts`);
      writeFileSync(file, code);
      (files[page] ??= []).push(file);
    }
    const list = join(folder, 'list.json');
    writeFileSync(list, JSON.stringify(files));
    const flags = [
      ...SOURCE_FLAGS,
      programOf('test/support/run-snippets.ts'),
      list,
      work,
      ...(isComplete ? ['--complete'] : [])
    ];
    const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 200_000 });
    return JSON.parse(stdout) as Record<string, PageRun>;
  } finally {
    for (const one of [folder, work]) rmSync(one, { recursive: true });
  }
}
