import type { Clock } from '../../base/clock.ts';
import { StreamFailure } from './values.ts';

/** Wait for a promise up to a time. @param text what has failed, if the time is over @throws StreamFailure; what the promise rejects with */
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
