// A row for each operation, in the order of the index. A revision has an operation if `in` names it; names of fields
// and answers that differ between revisions are in the row. Unknown parameters of a rule are refused, because a rule
// whose client is misspelt would apply to all. Lists are the oldest first, so that a new rule moves no other to
// another page. Batches run in slices, and their answers echo the entries with a result each.

import type { Static, TProperties } from 'typebox';
import type { AclGroup, AclRecord, AclSubject } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { any, anyOf, listOf, objectOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { checkEntry, oneOrMany } from '../input.ts';
import { Listing } from '../listing.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { checkDeleted, checkName, entryWord, errorTerm, resultOf } from '../records.ts';

/** The value that stands for all clients. */
const ALL = '$all';
const name = (description: string) => optional(text(description, { min: 1 }));

/** A rule. Unknown parameters are refused: a rule with a misspelt client must not apply to all. */
const RULE = objectOf(
  {
    clientid: name('The client id to which the rule applies'),
    client_id: optional(text('', { min: 1, documented: { in: [] } })),
    username: name('The user name to which the rule applies; without it and a client id, it applies to all'),
    all: optional(oneOf([ALL], 'The rule applies to all')),
    topic: text('The topic filter'),
    action: oneOf(['pub', 'sub', 'pubsub', 'subpub'], 'Publish, subscribe, or both: pubsub and subpub are the same'),
    access: oneOf(['allow', 'deny'], 'allow or deny: whether the client may do it'),
    // part of answers only
    result: optional(any('', { documented: { in: [] } }))
  },
  { additionalProperties: false }
);
type ShownAclRule = Static<typeof RULE>;

const TOPIC = text('The topic filter');
const ACTION = text('pub, sub, or both: pubsub or subpub, as it was written');
const ACCESS = text('allow or deny');
const RESULT = text('ok, or the fault: `{error,topic}`');
const OF_CLIENT_ID = { clientid: text('The client id') };
const OF_USERNAME = { username: text('The user name') };
const SHOWN = { topic: TOPIC, action: ACTION, access: ACCESS };
/** A rule with its result. Invalid parts of a request are echoed unchanged. */
const ECHOED = objectOf({ result: RESULT });

/** Rules of the examples. */
const OF_SENSOR = { clientid: 'sensor-1', topic: 'commands/sensor-1', action: 'sub', access: 'allow' };
const OF_SENSORS = { username: 'sensors', topic: 'sensors/#', action: 'pub', access: 'allow' };
const OF_EVERYONE = { all: ALL, topic: 'secret/#', action: 'pubsub', access: 'deny' };

/** Entries of a batch that are processed in one turn. Their writes are committed together. */
const ENTRIES_AT_ONCE = 50;

/** The parameters that name the subject of a rule. */
const SUBJECTS: readonly string[] = ['clientid', 'client_id', 'username', 'all'];

const ACTIONS = { publish: 'pub', subscribe: 'sub', pubsub: 'pubsub', subpub: 'subpub' } as const;

/** The invalid parameter, under its name in the original products; undefined: the rule itself is valid. */
function wordOf({ kind, original }: Fault): string | undefined {
  if (kind === 'wrongTopic') return 'topic';
  if (kind !== 'missingParameter' && kind !== 'wrongParameter') return undefined;
  return original === 'topic' || original === 'action' || original === 'access' ? original : 'login';
}

/** @throws Fault wrongParameter if a rule names more than one client */
function subjectOf({ clientid, client_id, username, all }: Partial<ShownAclRule>): AclSubject {
  const clientId = clientid ?? client_id;
  if ([clientId, username, all].filter((one) => one !== undefined).length > 1)
    throw new Fault('wrongParameter', 'a rule applies to a "clientid", to a "username", or to all: give one of them');
  if (clientId !== undefined) return { clientId };
  return username === undefined ? 'all' : { username };
}

async function add(context: Context, rule: ShownAclRule): Promise<void> {
  const { clientid, client_id, username, topic, action, access } = rule;
  const subject = subjectOf(rule);
  for (const [name, value] of Object.entries({ clientid, client_id, username, topic })) checkName(context, name, value);
  await context.broker.access.acl.set({ topic, action, access, ...(subject === 'all' ? {} : subject) });
}

/**
 * Set the rules of a batch.
 * @returns the rules with their results, in order
 */
async function addEach(context: Context, entries: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const results: Record<string, unknown>[] = [];
  const wordOfEntry = entryWord(context, wordOf, SUBJECTS);
  for (let from = 0; from < entries.length; from += ENTRIES_AT_ONCE) {
    if (from > 0) await context.broker.directory.nextSlice();
    const some = entries.slice(from, from + ENTRIES_AT_ONCE);
    const done = some.map(async (entry) =>
      echoed(
        entry,
        await resultOf(async () => add(context, checkEntry<ShownAclRule>(RULE, entry, context.isOriginal)), wordOfEntry)
      )
    );
    results.push(...(await Promise.all(done)));
  }
  return results;
}

/** A rule of a request, as the answer to the request shows it. */
function echoed(entry: unknown, result: string): Record<string, unknown> {
  const given = (typeof entry === 'object' && entry !== null ? entry : {}) as Partial<ShownAclRule>;
  const { clientid = given.client_id, username, topic, action, access } = given;
  const isForAll = clientid === undefined && username === undefined;
  // undefined fields are not written
  return { clientid, username, ...(isForAll ? { all: ALL } : {}), topic, action, access, result };
}

function shown({ clientId, username, topic, action, access }: AclRecord): Record<string, unknown> {
  const isForAll = clientId === undefined && username === undefined;
  return {
    ...(isForAll ? { all: ALL } : { clientid: clientId, username }),
    topic,
    action: ACTIONS[action],
    access
  };
}

/** The rules of a group, the oldest first: a new rule does not move existing ones to another page. */
async function list({ broker, page }: Context, group: AclGroup): Promise<Listing<AclRecord>> {
  // the documentation shows a result with the rules of lists, but not with those of look-ups
  const { acl } = broker.access;
  const records = await acl.part(group, page);
  return new Listing(records, (record) => ({ ...shown(record), result: 'ok' }), { count: acl.count(group) });
}

async function remove(context: Context, subject: AclSubject, topic: string): Promise<void> {
  const wasThere = await context.broker.access.acl.delete(subject, topic);
  checkDeleted(context, wasThere, `rule for the topic "${topic}"`);
}

/** An operation that lists the rules of a group. @param rule an example */
function listing(name: 'clientid' | 'username' | 'all', of: TProperties, rule: object): Operation {
  return operation({
    name: `list_${name}`,
    method: 'GET',
    path: `/acl/${name === 'all' ? ALL : name}`,
    ctl: name === 'clientid' ? { 'acl list': 'clientid username all topic action access' } : 'acl list',
    descr: 'List available mnesia in the cluster',
    example: { data: [{ ...rule, result: 'ok' }] },
    paged: 'max',
    data: listOf(objectOf({ ...of, ...SHOWN, result: RESULT })),
    run: (context) => list(context, name === 'clientid' ? 'clientId' : name)
  });
}

/** An operation that deletes a rule. @param path of its subject @param params an example */
function defineDeletion(name: string, path: string, params: Readonly<Record<string, string>>): Operation {
  return operation({
    name,
    method: 'DELETE',
    path: `/acl/${path}/topic/:topic` as '/acl/topic/:topic',
    ctl: path.startsWith('all') ? undefined : 'acl remove TOPIC=topic --client=clientid --user=username',
    descr: 'Delete mnesia in the cluster',
    example: { params },
    run: (context, { params }) => remove(context, subjectOf(params), params.topic)
  });
}

/** The access rules that are set at run time. */
export const ACL: readonly Operation[] = [
  listing('clientid', OF_CLIENT_ID, OF_SENSOR),
  listing('username', OF_USERNAME, OF_SENSORS),
  listing('all', { all: text('$all') }, OF_EVERYONE),
  operation({
    name: 'lookup_clientid',
    method: 'GET',
    path: '/acl/clientid/:clientid',
    descr: 'Lookup mnesia in the cluster',
    example: { params: { clientid: 'sensor-1' }, data: [OF_SENSOR] },
    data: listOf(objectOf({ ...OF_CLIENT_ID, ...SHOWN })),
    run: ({ broker }, { params: { clientid: clientId } }) => new Listing(broker.access.acl.of({ clientId }), shown)
  }),
  operation({
    name: 'lookup_username',
    method: 'GET',
    path: '/acl/username/:username',
    descr: 'Lookup mnesia in the cluster',
    example: { params: { username: 'sensors' }, data: [OF_SENSORS] },
    data: listOf(objectOf({ ...OF_USERNAME, ...SHOWN })),
    run: ({ broker }, { params: { username } }) => new Listing(broker.access.acl.of({ username }), shown)
  }),
  operation({
    name: 'add',
    method: 'POST',
    path: '/acl',
    ctl: 'acl add ACCESS=access ACTION=action TOPIC=topic --client=clientid --user=username',
    descr: 'Add mnesia in the cluster',
    example: {
      body: { clientid: 'sensor-3', topic: 'sensors/3/#', action: 'pub', access: 'allow' },
      data: { clientid: 'sensor-3', topic: 'sensors/3/#', action: 'pub', access: 'allow', result: 'ok' }
    },
    body: oneOrMany(RULE),
    data: anyOf([ECHOED, listOf(ECHOED)]),
    originalAnswer: (fault) => {
      const word = wordOf(fault);
      return word === undefined ? undefined : { code: 108, message: errorTerm(word) };
    },
    run: async (context, { body }) => {
      if (Array.isArray(body)) return addEach(context, body);
      await add(context, body as ShownAclRule);
      return echoed(body, 'ok');
    }
  }),
  defineDeletion('delete_clientid', 'clientid/:clientid', { clientid: 'sensor-1', topic: 'commands/sensor-1' }),
  defineDeletion('delete_username', 'username/:username', { username: 'sensors', topic: 'sensors/#' }),
  defineDeletion('delete_all', ALL, { topic: 'secret/#' }),
  defineDeletion('delete_all', `all/${ALL}`, { topic: 'secret/#' })
];
