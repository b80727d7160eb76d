import type { PageEnd, RetainedRecord } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { integer, listOf, objectOf, optional, text } from '../../../rest/kit/index.ts';
import { countUnder, Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';
import { ENCODING, MESSAGE_FIELDS, shownMessage } from './message.ts';

const EXPIRES_AT = {
  expires_at: optional(integer('When it expires, in milliseconds since 1970; absent: never'))
};
const { topic, qos, at, from_clientid, payload_size } = MESSAGE_FIELDS;
const RETAINED = objectOf({ topic, qos, payload_size, at, from_clientid, ...EXPIRES_AT });

function shown({ topic, qos, payloadBytes, timestamp, clientId, expiresAt }: RetainedRecord) {
  // undefined fields are not written
  return { topic, qos, payload_size: payloadBytes, at: timestamp, from_clientid: clientId, expires_at: expiresAt };
}

const AT = 1_767_225_600_000;

/** Retained messages. */
export const RETAINED_MESSAGES: readonly Operation[] = [
  operation({
    name: 'list_retained',
    method: 'GET',
    path: '/x/retained',
    ctl: { 'retained list [FILTER=topic]': 'topic qos payload_size at expires_at from_clientid' },
    descr: 'List the retained messages, without their payloads, in the order of their topics',
    paged: 100,
    hasCursor: true,
    query: objectOf({
      topic: optional(text('Only topics that this topic filter matches')),
      prefix: optional(text('Only topics that begin with this'))
    }),
    data: listOf(RETAINED),
    example: {
      query: { topic: 'sensors/#' },
      data: [{ topic: 'sensors/1/temperature', qos: 1, payload_size: 4, at: AT, from_clientid: 'sensor-1' }]
    },
    run: ({ broker, page: { limit, skip, cursor } }, { query }) => {
      const { topic: filter, prefix } = query;
      const parts = broker.directory.parts('retained', { filter, prefix, limit, skip, cursor });
      const wholeOf = (end: PageEnd) => ({ count: countUnder(query, end.count), cursor: end.cursor });
      return new Listing(parts, shown, wholeOf);
    }
  }),
  operation({
    name: 'lookup_retained',
    method: 'GET',
    path: '/x/retained/:topic',
    ctl: 'retained show TOPIC',
    descr: 'Look up the retained message of a topic, with its payload',
    showsPayloads: true,
    query: objectOf({ encoding: ENCODING }),
    data: objectOf({ ...MESSAGE_FIELDS, ...EXPIRES_AT }),
    example: {
      params: { topic: 'sensors/1/temperature' },
      data: {
        topic: 'sensors/1/temperature',
        qos: 1,
        retain: true,
        at: AT,
        from_clientid: 'sensor-1',
        payload_size: 4,
        payload: '21.5',
        encoding: 'plain',
        properties: {}
      }
    },
    run: async ({ broker }, { params: { topic }, query: { encoding } }) => {
      const message = broker.retained.get(topic);
      const record = await broker.directory.retainedMessage(topic);
      if (message === undefined || record === undefined) throw unknown(topic);
      return { ...shownMessage(message, encoding), expires_at: record.expiresAt };
    }
  }),
  operation({
    name: 'delete_retained',
    method: 'DELETE',
    path: '/x/retained/:topic',
    ctl: 'retained remove TOPIC',
    descr: 'Delete the retained message of a topic; subscribers are not notified',
    example: { params: { topic: 'sensors/1/temperature' } },
    run: async ({ broker }, { params: { topic } }) => {
      if (!(await broker.retained.delete(topic))) throw unknown(topic);
    }
  }),
  operation({
    name: 'delete_matching_retained',
    method: 'DELETE',
    path: '/x/retained',
    descr: 'Delete the retained messages that a topic filter matches; subscribers are not notified',
    query: objectOf({
      topic: text('The topic filter'),
      confirm: text('The topic filter again, so that nothing is deleted by mistake')
    }),
    data: objectOf({ deleted: integer('Number of messages that were deleted') }),
    example: { query: { topic: 'sensors/#', confirm: 'sensors/#' }, data: { deleted: 1 } },
    run: async ({ broker }, { query: { topic, confirm } }) => {
      if (confirm !== topic)
        throw new Fault('wrongParameter', `the parameter "confirm" must be the topic filter "${topic}"`, 'confirm');
      return { deleted: await broker.retained.deleteMatching(topic) };
    }
  })
];

function unknown(topic: string): Fault {
  return new Fault('unknownRecord', `the topic "${topic}" has no retained message`, 'not_found');
}
