import type { LaterOperations } from './later.ts';

/** Operations of the revision `hosted`: those of `later`. */
export type HostedOperations = LaterOperations;
