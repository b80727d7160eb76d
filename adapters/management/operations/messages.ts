// A row for each operation. Messages are published as the app would publish them: no rights of a client apply, and
// its name is not checked. Each revision accepts both names of the client id and answers with its own. A batch is
// worked on in slices; one wrong entry does not concern the others. With `errors: 'original'`, input is read as
// loosely as the documented products read it.

import type { TObject } from 'typebox';
import * as Type from 'typebox';
import { checkTopicFilter, checkTopicName, type QoS } from '../../../lib/index.ts';
import { Fault, shortened } from '../../rest/index.ts';
import { documentedAs } from '../../rest/kit/index.ts';
import { codesOf, faultOf } from '../codes.ts';
import { batchOf, checkEntry } from '../input.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER, LATER, type Revision } from '../revisions.ts';

/**
 * Every revision accepts both names.
 * @param isRequired the operation itself checks that a client id is given
 */
const clientIdNamed = (description: string, isRequired?: true) => ({
  clientid: Type.Optional(Type.String({ description, ...documentedAs({ in: LATER, isRequired }) })),
  client_id: Type.Optional(Type.String({ description, ...documentedAs({ in: EARLIER, isRequired }) }))
});
const SUBSCRIBER = clientIdNamed('The client id of the subscriber', true);
const topics = {
  topic: Type.Optional(Type.String({ description: 'The topic, or several, separated by commas' })),
  topics: Type.Optional(Type.String({ description: 'Several topics, separated by commas, in addition to "topic"' }))
};
const qos = Type.Optional(Type.Integer({ minimum: 0, maximum: 2, default: 0, description: 'The QoS' }));

const PUBLISH = Type.Object({
  ...topics,
  ...clientIdNamed('The client id of the publisher, which events name. It is not checked'),
  payload: Type.String({ description: 'The payload; empty with "retain": deletes the retained message of the topic' }),
  encoding: Type.Optional(
    Type.Enum(['plain', 'base64'], { default: 'plain', description: 'base64: the payload is Base64' })
  ),
  qos,
  retain: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'The retain flag: keep the message for the topic, in place of the previous one; an empty payload deletes it'
    })
  )
});
/**
 * The original products treat unknown encodings as plain, all values but true as false, and a missing payload as empty.
 */
const ORIGINAL_PUBLISH = Type.Object({
  ...PUBLISH.properties,
  payload: Type.Optional(Type.String()),
  encoding: Type.Optional(Type.String()),
  retain: Type.Optional(Type.Unknown())
});
const SUBSCRIBE = Type.Object({ ...topics, ...SUBSCRIBER, qos });
const UNSUBSCRIBE = Type.Object({ topic: topics.topic, ...SUBSCRIBER });

/** The entry as far as it was valid. Invalid parts of a request are echoed unchanged. */
const ENTRY_RESULTS = Type.Array(
  Type.Object(
    {
      clientid: Type.Optional(
        Type.Unknown(documentedAs({ in: LATER, as: Type.String({ description: 'The client id of the entry' }) }))
      ),
      client_id: Type.Optional(
        Type.Unknown(documentedAs({ in: EARLIER, as: Type.String({ description: 'The client id of the entry' }) }))
      ),
      topic: Type.Optional(
        Type.Unknown(documentedAs({ as: Type.String({ description: 'The topic or topics of the entry' }) }))
      ),
      code: Type.Integer({ description: '0: success; otherwise the code of the fault of the entry' }),
      message: Type.Optional(Type.String({ description: 'The description of the fault of the entry, for people' }))
    },
    { title: 'EntryResult' }
  )
);

type Publish = Type.Static<typeof ORIGINAL_PUBLISH>;
type Subscribe = Type.Static<typeof SUBSCRIBE>;
type Unsubscribe = Type.Static<typeof UNSUBSCRIBE>;
type Names = Pick<Publish, 'clientid' | 'client_id'>;

/**
 * The topics of a request without duplicates. With `errors: 'original'`, `topics` is used only without `topic`, and
 * invalid topics are left out if another one is valid.
 * @throws Fault wrongTopic
 */
function topicsIn(
  { isOriginal }: Context,
  { topic, topics: several }: Pick<Publish, 'topic' | 'topics'>,
  faultOfTopic: (topic: string) => string | undefined
): readonly string[] {
  const given = isOriginal ? listed(topic ?? several) : [...new Set([...listed(topic), ...listed(several)])];
  const wrong = given.find((one) => faultOfTopic(one) !== undefined);
  if (wrong === undefined && given.length > 0) return given;
  const valid = isOriginal ? given.filter((one) => faultOfTopic(one) === undefined) : [];
  if (valid.length > 0) return valid;
  const why =
    wrong === undefined
      ? 'a topic is needed: "topic" or "topics"'
      : `the topic "${wrong}" is not valid: ${faultOfTopic(wrong)}`;
  throw new Fault('wrongTopic', why, 'bad_topic');
}

function listed(topics: string | undefined): readonly string[] {
  return topics?.split(',') ?? [];
}

/** @throws Fault wrongParameter if both names are given with different values */
function clientIdIn({ revision, isOriginal }: Context, { clientid, client_id }: Names): string | undefined {
  if (!isOriginal && clientid !== undefined && client_id !== undefined && clientid !== client_id)
    throw new Fault('wrongParameter', '"clientid" and "client_id" name different clients; give one of them');
  return namedClient(revision, { clientid, client_id });
}

function namedClient(revision: Revision, { clientid, client_id }: Names): string | undefined {
  return revision.clientIdName === 'clientid' ? (clientid ?? client_id) : (client_id ?? clientid);
}

async function publish(context: Context, given: Publish): Promise<void> {
  const payload = payloadOf(given);
  const clientId = clientIdIn(context, given);
  const qos = (given.qos ?? 0) as QoS;
  for (const topic of topicsIn(context, given, checkTopicName))
    await context.broker.publish({ topic, payload, qos, retain: given.retain === true, clientId });
}

/** @throws Fault wrongParameter */
function payloadOf({ payload = '', encoding }: Publish): string | Buffer {
  if (encoding !== 'base64') return payload;
  const bytes = Buffer.from(payload, 'base64');
  if (bytes.toString('base64').replace(/=+$/, '') !== payload.replace(/(?<!=)=+$/, ''))
    throw new Fault('wrongParameter', 'the parameter "payload" is not Base64, as "encoding" says');
  return bytes;
}

function sessionOf(context: Context, given: Names) {
  const clientId = clientIdIn(context, given);
  if (clientId === undefined)
    throw new Fault('missingParameter', `the parameter "${context.revision.clientIdName}" is missing`);
  if (!context.broker.sessions.has(clientId))
    throw new Fault('unknownClient', `there is no client "${clientId}"`, 'channel_not_found');
  return context.broker.sessions.get(clientId);
}

function subscribe(context: Context, given: Subscribe): void {
  const filters = topicsIn(context, given, checkTopicFilter);
  const session = sessionOf(context, given);
  for (const filter of filters) session.subscribe(filter, { qos: (given.qos ?? 0) as QoS });
}

function unsubscribe(context: Context, given: Unsubscribe): void {
  const { topic } = given;
  if (topic === undefined) throw new Fault('wrongTopic', 'a topic is needed: "topic"', 'bad_topic');
  const why = checkTopicFilter(topic);
  if (why !== undefined) throw new Fault('wrongTopic', `the topic "${topic}" is not valid: ${why}`, 'bad_topic');
  sessionOf(context, given).unsubscribe(topic);
}

/** Number of entries that are started before any is awaited, and after which the batch yields to other work. */
const AT_ONCE = 100;

/** The problem of an entry. */
interface EntryFault {
  readonly code: number;
  readonly message: string | undefined;
}

/** The result for an entry of a list, by the name of the client id. */
const RESULTS = {
  clientid: (clientid: string | undefined, topic: string | undefined, code: number) => ({ clientid, topic, code }),
  client_id: (client_id: string | undefined, topic: string | undefined, code: number) => ({ client_id, topic, code })
};

/**
 * Call a function for each entry of a list.
 * @returns the entries with a code each, in order
 */
async function each<T extends Names & { readonly topic?: string; readonly topics?: string }>(
  context: Context,
  list: readonly unknown[],
  schema: TObject,
  run: (entry: T) => void | Promise<void>
): Promise<object[]> {
  const faultIn = async (entry: unknown): Promise<EntryFault | undefined> => {
    try {
      await run(checkEntry<T>(schema, entry, context.isOriginal));
      return undefined;
    } catch (error) {
      const fault = faultOf(error);
      if (fault === undefined) throw error;
      return { code: codesOf(fault).code, message: context.isOriginal ? undefined : shortened(fault.message) };
    }
  };
  const resultOf = RESULTS[context.revision.clientIdName];
  const results: object[] = [];
  for (let from = 0; from < list.length; from += AT_ONCE) {
    if (from > 0) await context.broker.directory.nextSlice();
    const some = list.slice(from, from + AT_ONCE);
    const faults = await Promise.all(some.map(faultIn));
    some.forEach((entry, at) => {
      const given = (typeof entry === 'object' && entry !== null ? entry : {}) as T;
      const topic = given.topic ?? given.topics;
      const fault = faults[at];
      const result = resultOf(namedClient(context.revision, given), topic, fault?.code ?? 0);
      results.push(fault === undefined ? result : { ...result, message: fault.message });
    });
  }
  return results;
}

const WRONG_TOPIC = `the topic "commands/#" is not valid: ${checkTopicName('commands/#')}`;

/** Publishing messages, and subscribing on behalf of clients. */
export const MESSAGES = [
  operation({
    name: 'mqtt_subscribe',
    method: 'POST',
    path: '/mqtt/subscribe',
    ctl: 'sub ID=clientid TOPIC=topic --qos',
    descr: 'Subscribe a topic',
    example: ({ clientIdName }) => ({ body: { [clientIdName]: 'sensor-1', topic: 'commands/all', qos: 1 } }),
    body: SUBSCRIBE,
    run: (context, { body }) => subscribe(context, body)
  }),
  operation({
    name: 'mqtt_publish',
    method: 'POST',
    path: '/mqtt/publish',
    ctl: 'pub TOPIC=topic PAYLOAD=payload --qos --retain',
    isFrequent: true,
    descr: 'Publish a MQTT message',
    example: ({ clientIdName }) => ({
      body: { [clientIdName]: 'console', topic: 'commands/sensor-1', payload: 'restart', qos: 1 }
    }),
    body: PUBLISH,
    originalBody: ORIGINAL_PUBLISH,
    // the earlier revision accepts such a payload, and its subscribers crash
    originalAnswer: ({ kind, original }, { name }) =>
      kind === 'wrongParameter' && original === 'payload' && name !== 'earlier'
        ? { code: 108, message: 'Request parameter type error' }
        : undefined,
    run: (context, { body }) => publish(context, body)
  }),
  operation({
    name: 'mqtt_unsubscribe',
    method: 'POST',
    path: '/mqtt/unsubscribe',
    ctl: 'unsub ID=clientid TOPIC=topic',
    descr: 'Unsubscribe a topic',
    example: ({ clientIdName }) => ({ body: { [clientIdName]: 'sensor-1', topic: 'commands/sensor-1' } }),
    body: UNSUBSCRIBE,
    run: (context, { body }) => unsubscribe(context, body)
  }),
  operation({
    name: 'mqtt_subscribe_batch',
    method: 'POST',
    path: '/mqtt/subscribe_batch',
    descr: 'Batch subscribes topics',
    example: ({ clientIdName }) => ({
      body: [{ [clientIdName]: 'sensor-1', topic: 'commands/all' }],
      data: [{ [clientIdName]: 'sensor-1', topic: 'commands/all', code: 0 }]
    }),
    body: batchOf(SUBSCRIBE),
    data: ENTRY_RESULTS,
    run: (context, { body }) => each<Subscribe>(context, body, SUBSCRIBE, (entry) => subscribe(context, entry))
  }),
  operation({
    name: 'mqtt_publish_batch',
    method: 'POST',
    path: '/mqtt/publish_batch',
    isFrequent: true,
    descr: 'Batch publish MQTT messages',
    example: ({ clientIdName }) => ({
      body: [
        { [clientIdName]: 'console', topic: 'commands/sensor-1', payload: 'restart' },
        { [clientIdName]: 'console', topic: 'commands/#', payload: 'restart' }
      ],
      data: [
        { [clientIdName]: 'console', topic: 'commands/sensor-1', code: 0 },
        { [clientIdName]: 'console', topic: 'commands/#', code: 115, message: WRONG_TOPIC }
      ]
    }),
    body: batchOf(PUBLISH),
    data: ENTRY_RESULTS,
    run: (context, { body }) =>
      each<Publish>(context, body, context.isOriginal ? ORIGINAL_PUBLISH : PUBLISH, (entry) => publish(context, entry))
  }),
  operation({
    name: 'mqtt_unsubscribe_batch',
    method: 'POST',
    path: '/mqtt/unsubscribe_batch',
    descr: 'Batch unsubscribes topics',
    example: ({ clientIdName }) => ({
      body: [{ [clientIdName]: 'sensor-1', topic: 'commands/sensor-1' }],
      data: [{ [clientIdName]: 'sensor-1', topic: 'commands/sensor-1', code: 0 }]
    }),
    body: batchOf(UNSUBSCRIBE),
    data: ENTRY_RESULTS,
    run: (context, { body }) => each<Unsubscribe>(context, body, UNSUBSCRIBE, (entry) => unsubscribe(context, entry))
  })
];
