import { BrokerError, type Clock } from '../../../lib/index.ts';

/**
 * Run a function until it settles, a time has passed on a clock, or one of some signals is aborted.
 * @param what for the error message
 * @param run gets a signal that is aborted in the last two cases, and then rejects with its reason
 * @throws BrokerError SOURCE_TIMEOUT; the reason of one of `outers`
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  what: string,
  outers: readonly AbortSignal[],
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  for (const outer of outers) outer.throwIfAborted();
  const abort = new AbortController();
  const forward = ({ target }: Event) => abort.abort((target as AbortSignal).reason);
  for (const outer of outers) outer.addEventListener('abort', forward, { once: true });
  const timer = clock.setTimeout(
    () => abort.abort(new BrokerError('SOURCE_TIMEOUT', `${what} did not answer within ${timeoutMs} ms`)),
    timeoutMs
  );
  try {
    return await run(abort.signal);
  } finally {
    clock.clearTimeout(timer);
    for (const outer of outers) outer.removeEventListener('abort', forward);
  }
}

/**
 * Wait for a promise that cannot be cancelled, at most until one of some signals is aborted.
 * @throws the reason of the signal; the rejection of the promise
 */
export async function untilAborted<T>(awaited: PromiseLike<T>, ...signals: AbortSignal[]): Promise<T> {
  let abort = (_: AbortSignal) => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = ({ reason }) => reject(reason);
  });
  const listeners = signals.map((signal) => ({ signal, listener: () => abort(signal) }));
  for (const { signal, listener } of listeners) {
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
  }
  try {
    return await Promise.race([awaited, aborted]);
  } finally {
    for (const { signal, listener } of listeners) signal.removeEventListener('abort', listener);
  }
}
