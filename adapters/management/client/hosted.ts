// Written by `UPDATE_OPENAPI=1 npm test -- openapi-files` from the operations. Do not edit.

import type { LaterOperations } from './later.ts';

export type HostedOperations = LaterOperations;
