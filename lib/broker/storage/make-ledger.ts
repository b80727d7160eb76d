import { BrokerError } from '../../base/errors.ts';
import type { StoreActions } from '../../store/chart.ts';
import { Ledger, type LedgerHost } from '../../store/ledger.ts';
import { storeMachine } from '../../store/store.machine.ts';
import type { Actors } from '../actors.ts';
import type { Services } from '../services.ts';

const STORE_ALARM = 'store_failed';

/** Measures the space of the store. */
interface SpaceWatch {
  /** Called when a commit has succeeded or failed. @param bytes its size */
  written(bytes: number): void;
  /** Called when a commit has failed, perhaps for lack of space. */
  checkSpace(): void;
}

/**
 * Make the ledger of the option `store`.
 * @param actors,space parts of the broker that are created later; used once the ledger is open
 * @returns undefined: there is no store
 */
export function makeLedger(
  services: Services,
  actors: () => Actors,
  space: () => SpaceWatch | undefined
): Ledger | undefined {
  const { settings, turn, alarms, announcer, events } = services;
  if (settings.store === undefined) return undefined;
  const host: LedgerHost = {
    turnLater: () => turn.schedule(),
    startChart(actions) {
      const start = actors().starter<StoreActions>(storeMachine(), {
        key: 'store',
        failed: (_, error, action) => announcer.failed(error, `the store's ${action}`, undefined),
        methodsFor: () => 'broker.start() or broker.stop()'
      });
      return start(actions, 'store');
    },
    written: (bytes) => space()?.written(bytes),
    storeFailed: (error) => {
      const summary = `${error.message}. Operations that must be persisted are refused until the store can be written again.`;
      alarms.raise({ id: STORE_ALARM, severity: 'critical', title: 'the store failed', summary });
      const announced = new BrokerError(error.code, summary, { cause: error.cause });
      announcer.failed(announced, 'writing to the store', undefined);
      if (events.heard['store.failed']) events.emit('store.failed', { error });
      space()?.checkSpace();
    },
    storeRecovered: () => {
      alarms.clear(STORE_ALARM);
      if (events.heard['store.recovered']) events.emit('store.recovered', {});
    }
  };
  return new Ledger(settings.store, services, host, settings.maxUnwrittenBytes);
}
