import { readFileSync } from 'node:fs';
import { createBroker } from 'embermq';
import { levelStore } from 'embermq/level';

/** A broker that has just started. */
export interface Started {
  readonly startMs: number;
  /** Of the whole process, before any collection that it does not do itself. */
  readonly residentBytes: number;
  /** Mapped files among them: node itself, libraries, tables of LevelDB. */
  readonly fileBytes: number;
  /** After a collection. */
  readonly heapBytes: number;
}

/** Start a broker on a folder and print what that took, as JSON: `node --expose-gc started.js FOLDER`. */
const [folder] = process.argv.slice(2);
const broker = createBroker({ store: levelStore(folder), allowAnonymous: true });
const beganMs = performance.now();
await broker.start();
const startMs = performance.now() - beganMs;
const status = readFileSync('/proc/self/status', 'utf8');
globalThis.gc?.();
globalThis.gc?.();
const started: Started = {
  startMs,
  residentBytes: bytesOf('VmRSS'),
  fileBytes: bytesOf('RssFile'),
  heapBytes: process.memoryUsage().heapUsed
};
console.log(JSON.stringify(started));
await broker.stop();

function bytesOf(name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
}
