/// <reference types="node" preserve="true" />
/** A store over LevelDB, or over any database of the abstract-level family. */
export type {
  LevelBatch,
  LevelChange,
  LevelDatabase,
  LevelEncoding,
  LevelEncodings,
  LevelIterator,
  LevelRange,
  LevelSnapshot
} from './database.ts';
export { inspectFolder } from './inspect.ts';
export type { FolderReport } from './inspection.ts';
export { type LevelStoreOptions, levelStore } from './level-store.ts';
