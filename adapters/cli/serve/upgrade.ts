// The version of a store is in the record that a start reads before all others: it tells whether the store is upgraded.
// What follows is counted until the broker has started. The end is not known: a start does not read queued messages, and
// nothing tells how many other records there are.

import { DEFINITIONS_VERSION, type Entry, FORMAT, FORMAT_KEY, readFormat, type Store } from '../../../lib/adapter.ts';
import { log, type Shell } from '../command.ts';
import { ProgressBar } from '../progress-bar.ts';

/** Shows on standard error that a store of an earlier release is upgraded, and how far. Nothing is shown for other stores. */
export class UpgradeProgress {
  readonly #store: Store;
  readonly #shell: Shell;
  /** Set while a store is upgraded. */
  #bar: ProgressBar | undefined;
  #records = 0;
  #bytes = 0;
  readonly #beganAtMs = performance.now();

  /** Follow the reads of a store until `finish` or `end`. */
  constructor(store: Store, shell: Shell) {
    this.#store = store;
    this.#shell = shell;
    const read = store.read.bind(store);
    store.read = async (from, to, limit) => {
      const entries = await read(from, to, limit);
      this.#see(entries);
      return entries;
    };
  }

  #see(entries: readonly Entry[]): void {
    const [first] = entries;
    if (this.#bar === undefined && this.#records === 0 && first?.key.equals(FORMAT_KEY)) this.#begin(first);
    this.#records += entries.length;
    for (const { key, value } of entries) this.#bytes += key.length + value.length;
    this.#bar?.show({ records: this.#records, bytes: this.#bytes });
  }

  #begin(record: Entry): void {
    const { format, definitions } = versionsIn(record);
    if (format >= FORMAT && definitions >= DEFINITIONS_VERSION) return;
    log(
      this.#shell,
      `${this.#store.name}: upgrading the store, which an earlier release has written (format ${format})`
    );
    this.#bar = new ProgressBar(this.#shell, 'upgrade:', 0);
  }

  /** Say that the store is upgraded. */
  finish(): void {
    const isUpgraded = this.#bar !== undefined;
    this.end();
    if (!isUpgraded) return;
    const seconds = ((performance.now() - this.#beganAtMs) / 1_000).toFixed(1);
    log(
      this.#shell,
      `${this.#store.name}: upgraded; ${this.#records.toLocaleString('en')} records were read in ${seconds} s`
    );
  }

  /** Follow no further reads, and remove the line. */
  end(): void {
    this.#bar?.end();
    this.#bar = undefined;
    Reflect.deleteProperty(this.#store, 'read'); // the method of its class again
  }
}

/** The versions in a format record. One that cannot be read is for the broker to refuse. */
function versionsIn(record: Entry): { readonly format: number; readonly definitions: number } {
  try {
    return readFormat(record);
  } catch {
    return { format: FORMAT, definitions: DEFINITIONS_VERSION };
  }
}
