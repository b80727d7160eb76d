import type { Operation } from '../../operation.ts';
import { USER_PASSWORDS } from '../users.ts';
import { CONFIGURATION } from './configuration.ts';
import { CONNECTORS } from './connectors.ts';
import { DELETE } from './delete.ts';
import { KICK } from './kick.ts';
import { RETAINED_MESSAGES } from './retained.ts';
import { RIGHTS } from './rights.ts';
import { RULE_TOOLS } from './rules.ts';
import { SEARCH } from './search.ts';
import { SESSION_QUEUES } from './sessions.ts';
import { BACKUP } from './store.ts';
import { TOPICS } from './topics.ts';

/** The operations on stored data: messages, sessions, rights, users and the store. */
export const DATA: readonly Operation[] = [
  ...RETAINED_MESSAGES,
  ...TOPICS,
  ...SEARCH,
  ...KICK,
  ...DELETE,
  ...RIGHTS,
  ...USER_PASSWORDS,
  ...SESSION_QUEUES,
  ...BACKUP,
  ...CONFIGURATION,
  ...CONNECTORS,
  ...RULE_TOOLS
];
