/** Upgrade requests of HTTP servers: which pages may make them, and who gets those of a path. For adapters. */
export { checkOrigins, LOOPBACK_ORIGINS, type OriginCheck } from './origins.ts';
export { pathOf, respond } from './requests.ts';
export { type Claimant, upgradesOf } from './upgrades.ts';
