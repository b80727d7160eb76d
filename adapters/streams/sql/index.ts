/**
 * SQL databases for stream rules, with the driver of the app: lookup tables, repeated queries as rows, and outputs as
 * rows of tables.
 */
export type { SqlDialectName } from './dialect.ts';
export type { SqlQuery, StreamsSqlOptions } from './options.ts';
export { sqlSink } from './sink.ts';
export { sqlSource } from './source.ts';
