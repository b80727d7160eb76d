import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const source = join(import.meta.dirname, '../streams-plugins/native/plugin.c');

/**
 * The reason why tests that compile are skipped, or false, for the options of `describe` and `it`. @throws Error if REQUIRE_SERVICES is 1
 */
export function skipWithoutCompiler(): string | false {
  if (spawnSync('cc', ['--version']).status === 0) return false;
  const reason = 'there is no C compiler "cc"; install gcc to run the tests of native plugins';
  if (process.env.REQUIRE_SERVICES === '1') throw new Error(reason);
  process.stderr.write(`\n*** SKIPPED: ${reason}\n\n`);
  return reason;
}

/** Compile the native plugin of the tests. @param version result of its function `version` */
export function compilePlugin(version: number): Buffer {
  const headers = join(dirname(createRequire(import.meta.url).resolve('node-api-headers/package.json')), 'include');
  return compile(readFileSync(source, 'utf8'), ['-I', headers, `-DVERSION=${version}`]);
}

/** Compile a shared library from C. */
export function compile(code: string, flags: readonly string[] = []): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-native-'));
  try {
    const [input, output] = [join(folder, 'plugin.c'), join(folder, 'plugin.so')];
    writeFileSync(input, code);
    execFileSync('cc', ['-shared', '-fPIC', '-O1', ...flags, '-o', output, input]);
    return readFileSync(output);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
