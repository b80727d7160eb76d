import type { Chart } from '../base/chart.ts';

/** The actions that the state chart of the broker names. `Broker` implements them. */
export interface BrokerActions {
  /** Start the timers and serve connections: the listeners are open. */
  accept(): void;
  /** Accept no more connections and disconnect all clients. */
  drain(): void;
  /** Release all resources. */
  release(): void;
}

/** The events of the state chart of the broker. */
export type BrokerEvent =
  | { type: 'start' }
  | { type: 'started' }
  /** The start failed: the store or a listener could not be opened. */
  | { type: 'failed' }
  | { type: 'stop' }
  | { type: 'stopped' };

/** The lifecycle of a broker: idle (created or starting), connected (accepting), disconnected (stopped, all resources released). */
export const brokerChart = {
  id: 'broker',
  initial: 'idle',
  states: {
    idle: {
      initial: 'built',
      states: {
        built: { on: { start: 'starting', stop: '#broker.disconnected' } },
        starting: { on: { started: '#broker.connected', failed: 'built' } }
      }
    },
    connected: {
      initial: 'accepting',
      states: {
        accepting: { entry: 'accept', on: { stop: 'draining' } },
        draining: { entry: 'drain', on: { stopped: '#broker.disconnected' } }
      }
    },
    disconnected: { entry: 'release', on: { start: 'idle.starting' } }
  }
} as const satisfies Chart<BrokerEvent['type'], keyof BrokerActions>;
