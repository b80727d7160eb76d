import { setImmediate, setTimeout } from 'node:timers/promises';

/** Turns in which a condition is checked before the waits of a millisecond begin. */
const QUICK_TURNS = 20;

/**
 * Resolves when a condition holds that sockets or other processes bring about. After some turns it is checked every millisecond only, which
 * leaves the processor to those that are waited for.
 */
export async function until(isTrue: () => boolean): Promise<void> {
  for (let turns = 0; !isTrue(); turns++) await (turns < QUICK_TURNS ? setImmediate() : setTimeout(1));
}
