import type { ErrorCodeEntry } from './row.ts';

/** Codes of the store. */
export const STORE_CODES = {
  IMPORT_UNFINISHED: {
    about: 'An import into this store was interrupted.',
    remedy: 'Import again, which starts from the beginning, or delete the store.'
  },
  STORE_CHANGED: {
    about: 'Another broker has written to the store since the last stop, or it was replaced.',
    remedy: 'Restore the previous store, or create a new broker for it.'
  },
  STORE_CLOSED: { about: 'The store is not open.', remedy: 'Open it first; a broker does this when it starts.' },
  STORE_CORRUPT: {
    about: 'A record of the store is missing or invalid.',
    remedy: 'Restore a backup, or start with `repairStore`.'
  },
  STORE_DAMAGED: {
    about: 'Committed records are lost or altered.',
    remedy: 'Restore a backup, or start with `repairStore`.'
  },
  STORE_FAILED: {
    about: 'A change could not be persisted; `cause` says why.',
    remedy: 'Free space, or correct permissions; the broker then continues on its own.'
  },
  STORE_IN_USE: {
    about: 'The store is still in use by this process.',
    remedy: 'Use one broker for each store, and await its stop.'
  },
  STORE_LOCKED: { about: 'Another process uses the store.', remedy: 'Stop that process, or use another folder.' },
  STORE_NOT_EMPTY: {
    about: 'The store that an import writes to contains records.',
    remedy: 'Import into a new store.'
  },
  STORE_OPEN: { about: 'The store is open.', remedy: 'Close it first.' },
  STORE_READ_ONLY: { about: 'The store was opened for reading only.', remedy: 'Open it without the option `scratch`.' },
  STORE_SLOW: { about: 'A commit takes very long.', remedy: 'Check the disk; clients wait meanwhile.' },
  STORE_SPACE_LOW: { about: 'The reserve of the store is in use.', remedy: 'Free space.' },
  STORE_TOO_NEW: {
    about: 'The store was written by a later version of embermq.',
    remedy: 'Use that version or a later one.'
  },
  STORE_UNUSABLE: {
    about: 'The store cannot be opened, for example because of a full disk or a missing permission.',
    remedy: 'The message names the cause and the remedy.'
  }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
