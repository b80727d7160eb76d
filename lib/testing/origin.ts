/** The number of calls of this package that are skipped at most on the way to the code under test. */
const MAX_FRAMES = 30;

/** Get a stack trace that begins with the caller of a function of this package. */
export function traceOf(callee: (...args: never) => unknown): Error {
  const trace = new Error();
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = MAX_FRAMES;
  Error.captureStackTrace(trace, callee);
  Error.stackTraceLimit = limit;
  return trace;
}

/** The first line of a stack trace that is outside of this package, such as `test (/app/door.test.js:12:7)`; empty if there is none. */
export function originOf(trace: Error | undefined): string {
  const own = ownFolders();
  const lines = framesOf(trace);
  const line = lines.find((frame) => !own.some((folder) => frame.includes(folder))) ?? lines[0] ?? '';
  return line.trim().replace(/^at (async )?/, '');
}

/** The folders of this package, as stack traces name them: `lib` and `adapters`, or the folder of a bundle. */
function ownFolders(): string[] {
  const here = /([^ (]+):\d+:\d+\)?$/.exec(framesOf(new Error())[0] ?? '')?.[1];
  if (here === undefined) return [];
  const root = /^(.*\/)lib\/testing\/[^/]+$/.exec(here)?.[1];
  return root === undefined ? [here.replace(/[^/]+$/, '')] : [`${root}lib/`, `${root}adapters/`];
}

/** The lines with the calls of a trace, with slashes on all systems. */
function framesOf(trace: Error | undefined): string[] {
  const lines = String(trace?.stack ?? '').split('\n');
  return lines.filter((line) => /^\s*at /.test(line)).map((line) => line.replaceAll('\\', '/'));
}
