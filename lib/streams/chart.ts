import type { Chart } from '../base/chart.ts';

/** The actions of the state chart of a stream rule. `StreamRule` implements them. */
export interface StreamRuleActions {
  /** Open sources and sinks, and let rows flow. */
  run(): void;
  /** Close them. */
  halt(): void;
  /** Set a timer for the next attempt, or the next time of the schedule. */
  awaitStart(): void;
  /** Cancel that timer. */
  cancelStart(): void;
  /** Release everything. */
  forget(): void;
}

/** The events of the state chart of a stream rule. */
export type StreamRuleEvent =
  /** it is to run */
  | { type: 'started' }
  /** it was stopped by a call, by its schedule or with the service */
  | { type: 'stopped' }
  /** it cannot run */
  | { type: 'failed' }
  /** it was dropped */
  | { type: 'dropped' };

/**
 * The lifecycle of a stream rule: idle (defined, never started), connected (running, rows flow), disconnected (stopped, with a reason; it may
 * start again by its schedule or its restart strategy).
 */
export const streamRuleChart = {
  id: 'streamRule',
  initial: 'idle',
  states: {
    idle: { on: { started: 'connected', failed: 'disconnected', stopped: 'disconnected', dropped: 'gone' } },
    connected: {
      entry: 'run',
      exit: 'halt',
      on: {
        started: { target: 'connected', reenter: true },
        stopped: 'disconnected',
        failed: 'disconnected',
        dropped: 'gone'
      }
    },
    disconnected: {
      entry: 'awaitStart',
      exit: 'cancelStart',
      on: {
        started: 'connected',
        failed: { target: 'disconnected', reenter: true },
        stopped: { target: 'disconnected', reenter: true },
        dropped: 'gone'
      }
    },
    gone: { type: 'final', entry: 'forget' }
  }
} as const satisfies Chart<StreamRuleEvent['type'], keyof StreamRuleActions>;
