import type { Clock } from '../../base/clock.ts';
import { StreamFailure } from './values.ts';

/**
 * Wait for a promise for a limited time.
 * @param text the operation that failed, if the time has elapsed
 * @throws StreamFailure; the rejection of the promise
 */
export async function within<T>(clock: Clock, promise: PromiseLike<T>, ms: number, text: string): Promise<T> {
  let timer: unknown;
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new StreamFailure(text)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clock.clearTimeout(timer);
  }
}
