// The two things of Node.js that the client of the package uses, for browsers. `.ci/console.mjs` names this file in place of the global `Buffer`
// and of `node:timers`.
export { Buffer } from 'buffer/';

export function setImmediate(run: () => void): void {
  setTimeout(run);
}
