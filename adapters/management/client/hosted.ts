// Written by `UPDATE_OPENAPI=1 npm test -- openapi-files` from the operations. Do not edit.

export type { LaterOperations as HostedOperations } from './later.ts';
