import type { AccessRule } from '../../../lib/index.ts';
import type { DatabaseRow } from './lookup.ts';
import { textOf } from './values.ts';

/** The user name of rows for everyone. */
const EVERYONE = '$all';
/** The prefix of topics that are compared character by character. */
const EXACT = 'eq ';

const ACCESSES: Readonly<Record<string, AccessRule['access']>> = {
  ...{ '1': 'allow', true: 'allow', t: 'allow', allow: 'allow' },
  ...{ '0': 'deny', false: 'deny', f: 'deny', deny: 'deny' }
};
const ACTIONS: Readonly<Record<string, NonNullable<AccessRule['action']>>> = {
  ...{ '1': 'subscribe', subscribe: 'subscribe', '2': 'publish', publish: 'publish' },
  ...{ '3': 'pubsub', pubsub: 'pubsub', all: 'pubsub' }
};

/** Read a row of an ACL table. @throws Error */
export function ruleOfRow({ allow, ipaddr, username, clientid, access, topic }: DatabaseRow): AccessRule {
  const decision = ACCESSES[textOf(allow, 'allow') ?? ''];
  if (decision === undefined) throw new Error('the column "allow" of an ACL row must be 1 or 0');
  const [user, client, address] = [
    condition(username, 'username'),
    condition(clientid, 'clientid'),
    condition(ipaddr, 'ipaddr')
  ];
  return {
    access: decision,
    action: actionOf(access, 'column "access" of an ACL row'),
    ...topicOf(topic),
    ...(user === undefined ? {} : { username: user }),
    ...(client === undefined ? {} : { clientId: client }),
    ...(address === undefined ? {} : { address })
  };
}

/**
 * Read the action of a rule: 1 subscribe, 2 publish, 3 both.
 * @throws Error
 */
export function actionOf(access: unknown, what: string): NonNullable<AccessRule['action']> {
  const action = ACTIONS[textOf(access, 'access') ?? ''];
  if (action === undefined) throw new Error(`the ${what} must be 1 (subscribe), 2 (publish) or 3 (both)`);
  return action;
}

/** Read a topic filter, or a topic after `eq `. @throws Error */
export function topicOf(value: unknown): Pick<AccessRule, 'topic' | 'exact'> {
  const topic = textOf(value, 'topic');
  if (topic === undefined || topic === '') throw new Error('a row or field of access rules has no topic');
  return topic.startsWith(EXACT) ? { topic: topic.slice(EXACT.length), exact: true } : { topic };
}

/** A condition on clients; undefined for everyone. */
function condition(value: unknown, column: string): string | undefined {
  const text = textOf(value, column);
  return text === '' || text === EVERYONE ? undefined : text;
}
