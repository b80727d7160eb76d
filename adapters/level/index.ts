/// <reference types="node" preserve="true" />
/** A store over LevelDB, or over any database of the abstract-level family. */
export type { LevelDatabase } from './database.ts';
export { type LevelStoreOptions, levelStore } from './level-store.ts';
