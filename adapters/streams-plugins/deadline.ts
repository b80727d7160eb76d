import type { Clock } from '../../lib/index.ts';

/**
 * Run something that ends at the latest when a time has passed, or when the plugins are closed.
 * @param late makes the error of a run that took too long
 * @param run its signal is aborted then. A run that does not end by that is left alone
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  closing: AbortSignal,
  late: () => Error,
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  closing.throwIfAborted();
  const ending = new AbortController();
  const close = () => ending.abort(closing.reason);
  closing.addEventListener('abort', close, { once: true });
  const timer = clock.setTimeout(() => ending.abort(late()), timeoutMs);
  try {
    return await new Promise<T>((resolve, reject) => {
      ending.signal.addEventListener('abort', () => reject(ending.signal.reason), { once: true });
      run(ending.signal).then(resolve, reject);
    });
  } finally {
    clock.clearTimeout(timer);
    closing.removeEventListener('abort', close);
  }
}
