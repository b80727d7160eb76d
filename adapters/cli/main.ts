#!/usr/bin/env node
import { fstatSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from './commands.ts';
import { readFileUpTo } from './config-text.ts';
import { collectWhenIdle } from './idle-collector.ts';

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
    return () => process.on('SIGHUP', () => {}).off('SIGHUP', listener);
  },
  exit: (code) => process.exit(code)
});
