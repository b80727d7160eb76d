/** Redis for stream rules: lookup tables, messages of channels as rows, and outputs as keys. It needs the package `ioredis`. */
export { redisLookup } from './lookup.ts';
export { redisSink } from './sink.ts';
export { redisSubSource } from './subscription.ts';
