import { isSame } from '../sql/compare.ts';
import { family, type SqlFunctionEntry } from '../sql/functions/function.ts';
import { valueAt } from '../sql/functions/lists.ts';
import { decodeJson } from '../sql/json.ts';
import { SqlFailure } from '../sql/sql-error.ts';
import { isObject, own, type Value } from '../sql/values.ts';
import { matches } from '../topics/topic.ts';

/** A function without arguments that returns a column. */
const reader = (
  name: string,
  column: string,
  returns: SqlFunctionEntry['returns'],
  about: string
): SqlFunctionEntry => ({
  name,
  params: [],
  column,
  returns,
  about,
  isTotal: true,
  run: (value: Value) => value
});

/** @param number from 1 */
function levelOf(topic: Value, number?: number | bigint): Value {
  if (number === undefined) return topic;
  const levels = typeof topic === 'string' ? topic.split('/') : [];
  if (number < 1 || number > levels.length)
    throw new SqlFailure(`topic: the topic has ${levels.length} levels, so there is no level ${number}`);
  return levels[Number(number) - 1];
}

function payloadAt(payload: Value, path?: string): Value {
  if (path === undefined) return payload;
  return valueAt(path.split('.'), typeof payload === 'string' ? decodeJson(payload) : payload, decodeJson);
}

/** A function of a list of objects with `topic` and `qos`. @param covers whether the topic of an object is a match */
const search = (name: string, about: string, covers: (listed: Value, topic: string) => boolean): SqlFunctionEntry => ({
  name,
  params: ['list', 'string', 'integer?'],
  returns: 'boolean',
  about,
  scans: 0,
  run: (list: readonly Value[], topic: string, qos?: number) =>
    list.some(
      (item) =>
        isObject(item) && covers(own(item, 'topic'), topic) && (qos === undefined || isSame(own(item, 'qos'), qos))
    )
});

/** The functions that read columns of the event, and those of lists of topics. */
export const EVENT_FUNCTIONS = family('event', [
  reader('msgid', 'id', 'string', 'The id of the message.'),
  reader('clientid', 'clientid', 'string', 'The client id.'),
  reader('username', 'username', 'string', 'The user name.'),
  reader('peerhost', 'peerhost', 'string', 'The address of the client.'),
  reader('clientip', 'peerhost', 'string', 'The address of the client.'),
  reader('qos', 'qos', 'integer', 'The QoS.'),
  {
    name: 'topic',
    params: ['integer?'],
    column: 'topic',
    returns: 'string',
    about: 'The topic, or one of its levels, from 1.',
    run: levelOf
  },
  {
    name: 'payload',
    params: ['string?'],
    column: 'payload',
    returns: 'any',
    weighs: 'part',
    about: 'The payload, or the value at a path with dots in a payload that is a JSON object.',
    run: payloadAt
  },
  {
    name: 'flags',
    params: [],
    column: 'flags',
    returns: 'object',
    weighs: 'part',
    about: 'The flags of the message.',
    isTotal: true,
    run: (flags: Value) => (isObject(flags) ? flags : {})
  },
  {
    name: 'flag',
    params: ['string'],
    column: 'flags',
    returns: 'any',
    weighs: 'part',
    about: 'One of the flags of the message.',
    isTotal: true,
    run: (flags: Value, name: string) => (isObject(flags) ? own(flags, name) : undefined)
  },
  search(
    'contains_topic',
    'Whether a list of objects contains one with this topic and QoS.',
    (listed, topic) => listed === topic
  ),
  search(
    'contains_topic_match',
    'Whether a list of objects contains one with this QoS and a topic that this topic filter matches.',
    (listed, filter) => typeof listed === 'string' && matches(filter, listed)
  )
]);
