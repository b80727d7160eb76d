import { type Operation, operation } from '../operation.ts';
import { CLIENTS } from './clients.ts';
import { MESSAGES } from './messages.ts';

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
export const OPERATIONS: readonly Operation[] = [INDEX, ...CLIENTS, ...MESSAGES];
