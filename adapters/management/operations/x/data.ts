import type { Operation } from '../../operation.ts';
import { BACKUP } from './backup.ts';
import { CONFIGURATION } from './configuration.ts';
import { CONNECTORS } from './connectors.ts';
import { DELETE } from './delete.ts';
import { KICK } from './kick.ts';
import { RETAINED_MESSAGES } from './retained.ts';
import { RIGHTS } from './rights.ts';
import { SESSION_QUEUES } from './sessions.ts';
import { TOPICS } from './topics.ts';

/** The operations on stored data: messages, sessions, rights and the store. */
export const DATA: readonly Operation[] = [
  ...RETAINED_MESSAGES,
  ...TOPICS,
  ...KICK,
  ...DELETE,
  ...RIGHTS,
  ...SESSION_QUEUES,
  ...BACKUP,
  ...CONFIGURATION,
  ...CONNECTORS
];
