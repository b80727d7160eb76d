import { BrokerError } from '../../base/errors.ts';
import { Ledger, type LedgerHost } from '../../store/ledger.ts';
import type { Services } from '../services.ts';

const STORE_ALARM = 'store_failed';

/** What measures the space of the store. */
interface SpaceWatch {
  /** A commit has succeeded or failed. @param bytes its size */
  written(bytes: number): void;
  /** A commit has failed, perhaps for lack of space. */
  checkSpace(): void;
}

/** Make the ledger of the option `store`. @param space called when there is a commit, which is later than this; undefined: there is no store */
export function makeLedger(services: Services, space: () => SpaceWatch | undefined): Ledger | undefined {
  const { settings, clock, wheel, work, turn, alarms, announcer, events } = services;
  if (settings.store === undefined) return undefined;
  const host: LedgerHost = {
    clock,
    wheel,
    work,
    turnLater: () => turn.schedule(),
    written: (bytes) => space()?.written(bytes),
    failed: (error, during) => announcer.failed(error, during, undefined),
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
  return new Ledger(settings.store, host, settings.maxUnwrittenBytes);
}
