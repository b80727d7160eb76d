import type { Clock } from './clock.ts';
import type { WorkCount } from './pending-work.ts';
import type { TimingWheel } from './timing-wheel.ts';

/**
 * Services that a part of the broker may use in any folder: time, the turn of the event loop, and a receiver of errors. `Services` of
 * `lib/broker` provides these and more.
 */
export interface BaseServices {
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly work: WorkCount;
  /** Call a function in the next turn. */
  later(run: () => void): void;
  /** Resolves when the next slice of a long task may run. @param had number of slices that the task has had; default: several */
  pause(had?: number): Promise<void>;
  /** Report an error that cannot be returned to a caller. */
  failed(error: unknown, during: string): void;
}
