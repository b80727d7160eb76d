import { BrokerError } from '../base/errors.ts';
import { inStore, REPAIR_REMEDY } from '../store/commits.ts';
import { describeKey } from '../store/keys.ts';
import { RecordError } from '../store/record.ts';
import type { Store } from '../store/store.ts';

/** The description of the fault that there is no commit record. */
export const COMMITS_LOST = 'the records of all commits are missing';
/** Maximum number of faults that an error message lists. */
const NAMED_FAULTS = 10;

/** A list of the first faults. @param count the total number, if `texts` does not contain all faults */
export function listed(texts: readonly string[], count = texts.length): string {
  const more = count > NAMED_FAULTS ? `; and ${count - NAMED_FAULTS} more` : '';
  return `${texts.slice(0, NAMED_FAULTS).join('; ')}${more}`;
}

/** Collects the faults of a store. */
export class Faults {
  readonly #store: Store;
  readonly #texts: string[] = [];
  #count = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Run a function that reads a record. An error becomes a fault of this record. @throws BrokerError STORE_TOO_NEW */
  guard(key: Buffer, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (error instanceof RecordError && error.code === 'STORE_TOO_NEW') throw inStore(this.#store, error);
      this.addKey(key);
    }
  }

  addKey(key: Buffer): void {
    this.add(`${describeKey(key)} cannot be read`);
  }

  add(text: string): void {
    this.#count++;
    if (this.#texts.length < NAMED_FAULTS) this.#texts.push(text);
  }

  /** @throws BrokerError STORE_CORRUPT if there are faults */
  check(): void {
    if (this.#count === 0) return;
    throw new BrokerError(
      'STORE_CORRUPT',
      `${this.#store.name}: ${listed(this.#texts, this.#count)}. ${REPAIR_REMEDY}`
    );
  }
}
