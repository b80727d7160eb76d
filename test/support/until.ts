import { setImmediate, setTimeout } from 'node:timers/promises';

/** Turns in which a condition is checked before the waits of a millisecond begin. */
const QUICK_TURNS = 20;

/**
 * Resolves when a condition holds that sockets or other processes bring about. After some turns it is checked only every millisecond, which
 * leaves the processor to the awaited processes.
 */
export async function until(isTrue: () => boolean): Promise<void> {
  for (let turns = 0; !isTrue(); turns++) await (turns < QUICK_TURNS ? setImmediate() : setTimeout(1));
}
