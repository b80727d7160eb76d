import type { Clock } from '../../lib/index.ts';

/**
 * Run a function until a time has passed, or until the plugins are closed.
 * @param late creates the error of a run that took too long
 * @param run its signal is aborted in these cases. A run that does not end then is abandoned
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
