import { type Operation, operation } from '../operation.ts';
import { CLIENTS } from './clients.ts';
import { CONNECTIONS } from './connections.ts';
import { METRICS, STATS } from './figures.ts';
import { LISTENERS } from './listeners.ts';
import { MESSAGES } from './messages.ts';
import { BROKERS, NODES } from './nodes.ts';
import { ROUTES } from './routes.ts';
import { SESSIONS } from './sessions.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';

const INDEX: Operation = operation({
  name: 'index',
  method: 'GET',
  path: '/',
  descr: 'List all operations',
  run: ({ operations }) =>
    operations
      .filter(({ path }) => path !== '/')
      .map(({ name, method, path, descr }) => ({ name, method, path, descr }))
});

/** All operations, in the order of the index. */
export const OPERATIONS: readonly Operation[] = [
  INDEX,
  ...BROKERS,
  ...CONNECTIONS,
  ...CLIENTS,
  ...LISTENERS,
  ...METRICS,
  ...NODES,
  ...MESSAGES,
  ...ROUTES,
  ...SESSIONS,
  ...STATS,
  ...SUBSCRIPTIONS
];
