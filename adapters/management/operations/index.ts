import { componentOf, listOf, oneOf, text } from '../../rest/kit/index.ts';
import { type Operation, operation } from '../operation.ts';
import { ACL } from './acl.ts';
import { ALARMS } from './alarms.ts';
import { APPLICATIONS } from './applications.ts';
import { BANNED } from './banned.ts';
import { CLIENTS } from './clients.ts';
import { CONFIGS } from './configs.ts';
import { CONNECTIONS } from './connections.ts';
import { CREDENTIALS } from './credentials.ts';
import { LISTENERS } from './listeners.ts';
import { MESSAGES } from './messages.ts';
import { METRICS, STATS } from './metrics.ts';
import { BROKERS, NODES } from './nodes.ts';
import { withNodeForms } from './on-node.ts';
import { PLUGINS } from './plugins.ts';
import { RESOURCES } from './resources.ts';
import { ROUTES } from './routes.ts';
import { ruleFault } from './rule-faults.ts';
import { RULE_KINDS } from './rule-kinds.ts';
import { RULES } from './rules.ts';
import { SESSIONS } from './sessions.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';
import { USERS } from './users.ts';
import { EXTENSIONS } from './x/index.ts';

const INDEX: Operation = operation({
  name: 'index',
  method: 'GET',
  path: '/',
  descr: 'List all operations',
  data: listOf(
    componentOf('Operation', 'An operation of the interface', {
      name: text('Name of the operation; some operations share one'),
      method: oneOf(['GET', 'POST', 'PUT', 'DELETE'], 'Method of the request'),
      path: text('Path behind the prefix; parameters begin with a colon'),
      descr: text('The purpose of the operation')
    })
  ),
  example: {
    data: [
      {
        name: 'list_clientid',
        method: 'GET',
        path: '/auth_clientid',
        descr: 'List available clientid in the cluster'
      }
    ]
  },
  run: ({ operations }) =>
    operations
      .filter(({ path }) => path !== '/')
      .map(({ name, method, path, descr }) => ({ name, method, path, descr }))
});

/** All operations, in the order of the index. */
export const OPERATIONS: readonly Operation[] = withNodeForms([
  INDEX,
  ...CREDENTIALS,
  ...ACL,
  ...USERS,
  ...ALARMS,
  ...APPLICATIONS,
  ...BANNED,
  ...BROKERS,
  ...CONFIGS,
  ...CONNECTIONS,
  ...CLIENTS,
  ...LISTENERS,
  ...METRICS,
  ...NODES,
  ...PLUGINS,
  ...MESSAGES,
  ...ROUTES,
  ...[...RULES, ...RULE_KINDS, ...RESOURCES].map((row) => ({ ...row, faultOf: ruleFault })),
  ...SESSIONS,
  ...STATS,
  ...SUBSCRIPTIONS,
  ...EXTENSIONS
]);
