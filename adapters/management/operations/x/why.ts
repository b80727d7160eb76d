import type { Static } from 'typebox';
import {
  CAUSES,
  type Cause,
  type CauseCode,
  RECORDED,
  type ReasonRecord,
  type RecordedCode
} from '../../../../lib/index.ts';
import {
  anyOf,
  flag,
  integer,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  recordOf,
  text
} from '../../../rest/kit/index.ts';
import { Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const CODES = Object.keys(CAUSES) as CauseCode[];
const RECORDED_CODES = Object.keys(RECORDED) as RecordedCode[];

const CAUSE = objectOf({
  code: oneOf(CODES, 'The cause'),
  kind: oneOf(
    ['recorded', 'sampled', 'derived'],
    'recorded: when it happened; sampled: one of the last examples; derived: from the state of the broker now'
  ),
  at: integer('When it happened, in milliseconds since 1970; of several the last one'),
  count: integer('Number of times'),
  text: text('The cause in a sentence'),
  evidence: recordOf(anyOf([text(), number(), flag()]), 'The values that the sentence is about'),
  remedy: text('Advice')
});
const RECORD = objectOf({
  at: integer('When it happened, in milliseconds since 1970; of several the last one'),
  since: integer('The time of the first one; of a lost connection, that of the last packet of its client'),
  code: oneOf(RECORDED_CODES, 'The event'),
  about: text('The event in a sentence'),
  count: integer('Number of times in a row'),
  clientid: optional(text('The client, or the receiver of a message')),
  from_clientid: optional(text('The publisher of a message; empty: the app that runs the broker')),
  topic: optional(text('The topic of a message, or the topic filter of a subscription: its first 256 characters')),
  qos: integer('The QoS of a message or a subscription'),
  rule: optional(text('The id of a rule')),
  ip_address: optional(text('The address of a client whose CONNECT was refused')),
  detail: optional(text('Details'))
});

function shownRecord(record: ReasonRecord): Static<typeof RECORD> {
  const { at, since, code, count, clientId, publisher, topic, qos, rule, address, detail } = record;
  const { about } = RECORDED[code];
  // undefined fields are not written
  const named = { clientid: clientId, from_clientid: publisher, topic, qos, rule, ip_address: address, detail };
  return { at, since, code, about, count, ...named } as Static<typeof RECORD>;
}

function shownCause({ code, kind, at, count, text, evidence, remedy }: Cause): Static<typeof CAUSE> {
  return { code, kind, at, count, text, evidence, remedy } as Static<typeof CAUSE>;
}

/** Details about rules have values of messages. */
function withoutValues(cause: Cause): Cause {
  const { rule, topic, clientId, publisher, bridge, isStarted, waiting, waitingOutputs } = cause.evidence;
  if (rule === undefined && bridge === undefined) return cause;
  const { since, until, isCertain } = cause.evidence;
  const names = { rule, topic, clientId, publisher, bridge };
  const evidence = { ...names, isStarted, waiting, waitingOutputs, since, until, isCertain };
  return { ...cause, evidence, text: CAUSES[cause.code].text(evidence) };
}

/** The reasons for which messages did not arrive, and the history of clients. */
export const REASONS: readonly Operation[] = [
  operation({
    name: 'explain_arrival',
    method: 'GET',
    path: '/x/why',
    ctl: 'why --topic --client=clientid --publisher --rule --at',
    descr:
      'Explain why a message did not arrive, afterwards: the causes that were recorded, and those that are in the state of the broker',
    query: objectOf({
      topic: text('The topic name, as its publisher writes it'),
      clientid: optional(text('The client that should have received the message')),
      publisher: optional(text('The client that published it; empty: the app that runs the broker')),
      rule: optional(text('The rule that should have received it')),
      at: optional(
        integer(
          'When it was published, in milliseconds since 1970; a time in the future counts as now. Default: any time until now'
        )
      )
    }),
    data: objectOf({
      is_complete: flag('False if records of that time are no longer kept, or not everything was searched'),
      known_since: optional(
        integer(
          'Since when all records about the question are kept, in milliseconds since 1970; absent: nothing is recorded'
        )
      ),
      causes: listOf(CAUSE, 'The causes: what holds before what is over, what is near to that time before what is not')
    }),
    example: {
      query: { topic: 'plant/1/temperature', clientid: 'panel' },
      data: {
        is_complete: true,
        known_since: 1_767_225_600_000,
        causes: [
          {
            code: 'offline_no_session',
            kind: 'derived',
            at: 1_767_225_600_000,
            count: 1,
            text: 'Client "panel" is not connected and has no session: it has not connected since the broker started at 2026-01-01T00:00:00.000Z, and sessions that are not kept end with the broker.',
            evidence: {
              clientId: 'panel',
              detail:
                'it has not connected since the broker started at 2026-01-01T00:00:00.000Z, and sessions that are not kept end with the broker'
            },
            remedy: CAUSES.offline_no_session.remedy
          }
        ]
      }
    },
    run: async ({ broker, hidesPayloads }, { query: { topic, clientid: clientId, publisher, rule, at } }) => {
      const { isComplete, knownSince, causes } = await broker.monitor.why({ topic, clientId, publisher, rule, at });
      const shown = hidesPayloads ? causes.map(withoutValues) : causes;
      const known = knownSince === undefined ? {} : { known_since: knownSince };
      return { is_complete: isComplete, ...known, causes: shown.map(shownCause) };
    }
  }),
  operation({
    name: 'list_client_history',
    method: 'GET',
    path: '/x/clients/:clientid/history',
    ctl: { 'clients history ID': 'at code count topic from_clientid detail' },
    descr:
      'List the last events of a client, the latest first: connections, subscriptions, refusals and dropped messages',
    paged: 100,
    hasCursor: true,
    query: objectOf({
      code: optional(oneOf(RECORDED_CODES, 'Only these events')),
      topic: optional(text('Only events whose topic matches this topic filter'))
    }),
    data: listOf(RECORD),
    example: {
      params: { clientid: 'sensor-1' },
      query: { code: 'connected' },
      data: [
        {
          at: 1_767_225_600_000,
          since: 1_767_225_600_000,
          code: 'connected',
          about: RECORDED.connected.about,
          count: 1,
          clientid: 'sensor-1',
          qos: 0,
          detail: 'from 192.0.2.10'
        }
      ]
    },
    run: (context, { params: { clientid: clientId }, query: { code, topic } }) => {
      const { broker, hidesPayloads } = context;
      const { limit, skip, cursor } = context.page;
      const page = broker.monitor.reasons.list({ clientId, code, filter: topic, limit, skip, cursor });
      const shown = (record: ReasonRecord) =>
        shownRecord(hidesPayloads && record.rule !== undefined ? { ...record, detail: undefined } : record);
      return new Listing(page.entries, shown, { count: -1, cursor: page.cursor });
    }
  })
];
