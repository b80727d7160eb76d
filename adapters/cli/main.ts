#!/usr/bin/env node
import { fstatSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Time in milliseconds that a stopped broker waits for the reader of its output. */
const LAST_OUTPUT_MS = 1_000;

const isBroker = process.argv[2] === 'serve';
// Loading the modules takes some 200 ms, in which SIGHUP would end the process. This listener stays until the process ends.
if (isBroker) process.on('SIGHUP', () => {});
const [{ runCommand }, { readFileUpTo, standardInput }, { collectWhenIdle, growHeapQuickly }] = await Promise.all([
  import('./commands.ts'),
  import('./config-text.ts'),
  import('./idle-collector.ts')
]);
if (isBroker) growHeapQuickly();

process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  pid: process.pid,
  get stdin() {
    return standardInput();
  },
  get stdinBytes() {
    const found = fstatSync(0);
    return found.isFile() ? found.size : undefined;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  readFile: readFileUpTo,
  importPackage: (name) => import(name),
  collectWhenIdle,
  delay: (ms, signal) => delay(ms, undefined, { signal }).catch(() => {}),
  onSignal(listener) {
    process.on('SIGINT', listener).on('SIGTERM', listener);
    return () => process.off('SIGINT', listener).off('SIGTERM', listener);
  },
  onHangup(listener) {
    process.on('SIGHUP', listener);
    return () => process.off('SIGHUP', listener);
  },
  exit: (code) => process.exit(code)
});

// Unread lines would keep the process alive forever. The other commands wait for their reader, as in
// `embermq sub | less`.
if (isBroker) setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref();
