// A row for each operation. Messages are published as the app would publish them: no rights of a client apply, and
// its name is not checked. Each revision accepts both names of the client id and answers with its own. A batch is
// worked on in slices; one wrong entry does not concern the others. With `errors: 'original'`, input is read as
// loosely as the documented products read it.

import type { Static, TObject } from 'typebox';
import { checkTopicFilter, checkTopicName, type QoS } from '../../../lib/index.ts';
import { Fault, shortened } from '../../rest/index.ts';
import { any, componentOf, flag, integer, listOf, objectOf, oneOf, optional, text } from '../../rest/kit/index.ts';
import { codesOf, faultOf } from '../codes.ts';
import { batchOf, checkEntry } from '../input.ts';
import { type Context, operation } from '../operation.ts';
import { EARLIER, LATER, type Revision } from '../revisions.ts';

/**
 * Every revision accepts both names.
 * @param isRequired the operation itself checks that a client id is given
 */
const clientIdNamed = (description: string, isRequired?: true) => ({
  clientid: optional(text(description, { documented: { in: LATER, isRequired } })),
  client_id: optional(text(description, { documented: { in: EARLIER, isRequired } }))
});
const SUBSCRIBER = clientIdNamed('The client id of the subscriber', true);
const topics = {
  topic: optional(text('The topic, or several, separated by commas')),
  topics: optional(text('Several topics, separated by commas, in addition to "topic"'))
};
const qos = optional(integer('The QoS', { min: 0, max: 2, default: 0 }));

const PUBLISH = objectOf({
  ...topics,
  ...clientIdNamed('The client id of the publisher, which events name. It is not checked'),
  payload: text('The payload; empty with "retain": deletes the retained message of the topic'),
  encoding: optional(oneOf(['plain', 'base64'], 'base64: the payload is Base64', { default: 'plain' })),
  qos,
  retain: optional(
    flag('The retain flag: keep the message for the topic, in place of the previous one; an empty payload deletes it', {
      default: false
    })
  )
});
/**
 * The original products treat unknown encodings as plain, all values but true as false, and a missing payload as empty.
 */
const ORIGINAL_PUBLISH = objectOf({
  ...PUBLISH.properties,
  payload: optional(text()),
  encoding: optional(text()),
  retain: optional(any())
});
const SUBSCRIBE = objectOf({ ...topics, ...SUBSCRIBER, qos });
const UNSUBSCRIBE = objectOf({ topic: topics.topic, ...SUBSCRIBER });

/** The entry as far as it was valid. Invalid parts of a request are echoed unchanged. */
const ENTRY_RESULTS = listOf(
  componentOf('EntryResult', 'The result of an entry of a batch', {
    clientid: optional(any('', { documented: { in: LATER, as: text('The client id of the entry') } })),
    client_id: optional(any('', { documented: { in: EARLIER, as: text('The client id of the entry') } })),
    topic: optional(any('', { documented: { as: text('The topic or topics of the entry') } })),
    code: integer('0: success; otherwise the code of the fault of the entry'),
    message: optional(text('The description of the fault of the entry, for people'))
  })
);

type Publish = Static<typeof ORIGINAL_PUBLISH>;
type Subscribe = Static<typeof SUBSCRIBE>;
type Unsubscribe = Static<typeof UNSUBSCRIBE>;
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
