// The things of Node.js that the client of the package uses, for browsers. `.ci/console.mjs` names this file in place of the globals `Buffer` and
// `process`, and of `node:timers`.
export { Buffer } from 'buffer/';

/** In place of `node:buffer`, which long strings of packets are checked with. */
const buffer = {
  isUtf8(bytes: Uint8Array<ArrayBuffer>): boolean {
    try {
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
      return true;
    } catch {
      return false;
    }
  }
};

export const process = {
  getBuiltinModule: (name: string) => (name === 'node:buffer' ? buffer : undefined)
};

export function setImmediate(run: () => void): void {
  setTimeout(run);
}
