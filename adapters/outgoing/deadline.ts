import type { Clock } from '../../lib/index.ts';

/** The conditions that end a run early. */
interface Deadline {
  readonly clock: Clock;
  readonly ms: number;
  /** Creates the error of a run that takes longer. */
  late(): Error;
  /** The run also ends when one of these is aborted. Default: none. */
  readonly outers?: readonly AbortSignal[];
}

/**
 * Run a function until it settles, a time has passed on a clock, or one of some signals is aborted.
 * @param run its signal is aborted in the last two cases. A run that continues nevertheless is abandoned
 * @throws the result of `late`; the reason of one of `outers`; errors of `run`
 */
export async function withDeadline<T>(
  { clock, ms, late, outers = [] }: Deadline,
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  for (const outer of outers) outer.throwIfAborted();
  const ending = new AbortController();
  const forward = ({ target }: Event) => ending.abort((target as AbortSignal).reason);
  for (const outer of outers) outer.addEventListener('abort', forward, { once: true });
  const timer = clock.setTimeout(() => ending.abort(late()), ms);
  try {
    return await untilAborted(ending.signal, run(ending.signal));
  } finally {
    clock.clearTimeout(timer);
    for (const outer of outers) outer.removeEventListener('abort', forward);
  }
}

/**
 * Wait for a promise that cannot be cancelled, at most until a signal is aborted.
 * @throws the reason of the signal; the rejection of the promise
 */
export function untilAborted<T>(signal: AbortSignal, awaited: PromiseLike<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    const end = () => signal.removeEventListener('abort', abort);
    Promise.resolve(awaited).finally(end).then(resolve, reject);
  });
}
