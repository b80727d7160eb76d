#!/usr/bin/env node
import { fstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from './commands.ts';

// Whoever read our output has gone (`embermq sub ... | head`): end as a process would that knows SIGPIPE.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 141 : 1));

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  pid: process.pid,
  stdin: process.stdin,
  get stdinBytes() {
    const found = fstatSync(0);
    return found.isFile() ? found.size : undefined;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  readFile: (path) => readFile(path),
  importPackage: (name) => import(name),
  delay: (ms, signal) => delay(ms, undefined, { signal }).catch(() => {}),
  onSignal(listener) {
    process.on('SIGINT', listener).on('SIGTERM', listener);
    return () => process.off('SIGINT', listener).off('SIGTERM', listener);
  },
  exit: (code) => process.exit(code)
});
