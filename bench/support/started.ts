import { readFileSync } from 'node:fs';
import { createBroker } from 'embermq';
import { levelStore } from 'embermq/level';

/** The measurements of a broker that has just started. */
export interface Started {
  readonly startMs: number;
  /** The resident memory of the whole process, before a garbage collection is requested. */
  readonly residentBytes: number;
  /** The part of it that is mapped files: Node itself, libraries, tables of LevelDB. */
  readonly fileBytes: number;
  /** The heap after a garbage collection. */
  readonly heapBytes: number;
}

/** Start a broker on a folder and print the measurements as JSON: `node --expose-gc started.js FOLDER`. */
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
