/// <reference types="node" preserve="true" />
/** Authentication and access control by database queries, which the app executes with its own driver. */
export type { BreakerOptions, LimitOptions } from '../outgoing/limits.ts';
export { type MongodbOptions, type MongodbQuery, mongodb } from './mongodb.ts';
export type { DatabaseOptions } from './options.ts';
export { type RedisOptions, redis } from './redis.ts';
export { mysql, postgresql, type SqlOptions } from './sql.ts';
