// A row for each operation. A trace that is begun here always has a duration, so that a forgotten one ends. Lines are
// kept only for traces that are begun through this interface, not for those of the app, and a cursor is the number of
// the last line that was sent. Errors of the broker name its options; `NAMES` translates them to parameters of
// requests.

import type { Broker, KeptLine, Trace } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { anyObject, integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { renamed } from '../../codes.ts';
import { Listing } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';

/** A forgotten trace ends after this time. */
const DEFAULT_DURATION_S = 600;
const MAX_DURATION_S = 86_400;

const WANTED = objectOf(
  {
    clientid: optional(text('Trace this client', { min: 1 })),
    topic: optional(text('Trace messages whose topic matches this topic filter')),
    ip_address: optional(text('Trace the clients of this IP address or network')),
    payload: optional(oneOf(['text', 'hex', 'base64', 'none'], 'The form of payloads', { default: 'text' })),
    max_payload_bytes: optional(
      integer('Bytes of each payload that are written', { min: 0, max: 65_536, default: 1_024 })
    ),
    duration_s: optional(
      integer('The trace ends after this time, in seconds', {
        min: 1,
        max: MAX_DURATION_S,
        default: DEFAULT_DURATION_S
      })
    )
  },
  { additionalProperties: false }
);
const TRACE = objectOf({
  id: integer('Number of the trace'),
  clientid: optional(text('The client that is traced; absent: any')),
  topic: optional(text('The topic filter of the messages that are traced; absent: any')),
  ip_address: optional(text('The IP address or network of the clients that are traced; absent: any')),
  started_at: integer('In milliseconds since 1970'),
  status: text('active, or why it has ended: stopped, duration, error, closed, broker_stopped'),
  lines: integer('Number of lines so far'),
  bytes: integer('The size of these lines; of lines that can be read here, the size of what was recorded for them'),
  kept_lines: optional(integer('Number of lines that can be read; absent if the app has begun the trace'))
});
const LINE = objectOf({
  number: integer('Number of the line, which is also a cursor'),
  record: anyObject('The line, as the README describes it')
});

function shown({ broker }: Context, trace: Trace): object {
  const { id, clientId, topic, address, startedAt, endReason, lines, bytes } = trace;
  // undefined fields are not written
  return {
    id,
    clientid: clientId,
    topic,
    ip_address: address,
    started_at: startedAt,
    status: endReason ?? 'active',
    lines,
    bytes,
    kept_lines: broker.monitor.traces.lineCount(id)
  };
}

/** The parameter names of the interface, by the option names of traces. */
const NAMES = { 'trace.topic': 'topic', 'trace.address': 'ip_address' };

/**
 * Start a trace.
 * @throws Fault wrongParameter, wrongTopic with the names of the interface
 */
function start({ broker }: Context, options: Parameters<Broker['monitor']['traces']['start']>[0]): Trace {
  try {
    return broker.monitor.traces.start(options);
  } catch (error) {
    throw renamed(error, NAMES);
  }
}

/** @throws Fault unknownRecord */
function traceOf({ broker }: Context, id: string): Trace {
  const trace = /^\d{1,15}$/.test(id) ? broker.monitor.traces.get(Number(id)) : undefined;
  if (trace === undefined) throw new Fault('unknownRecord', `there is no trace "${id}"`);
  return trace;
}

/** @throws Fault wrongParameter */
function numberIn(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new Fault('wrongParameter', `the parameter "cursor" must be the number of a line, not "${cursor}"`, 'cursor');
}

/** Packets and messages of single clients, line by line. */
export const TRACES: readonly Operation[] = [
  operation({
    name: 'list_traces',
    method: 'GET',
    path: '/x/traces',
    ctl: { 'traces list': 'id status started_at clientid topic ip_address lines bytes kept_lines' },
    descr: 'List the traces: the active ones, and those that have ended and whose lines are kept',
    data: listOf(TRACE),
    example: {
      data: [{ id: 1, clientid: 'sensor-1', started_at: 1_767_225_600_000, status: 'active', lines: 0, bytes: 0 }]
    },
    run: (context) => context.broker.monitor.traces.list().map((trace) => shown(context, trace))
  }),
  operation({
    name: 'start_trace',
    method: 'POST',
    path: '/x/traces',
    ctl: 'traces start --client=clientid --topic --address=ip_address --payload --bytes=max_payload_bytes --seconds=duration_s',
    descr: 'Trace a client, the messages of a topic filter or the clients of an address',
    body: WANTED,
    data: TRACE,
    example: {
      body: { clientid: 'sensor-1', duration_s: 60 },
      data: {
        id: 2,
        clientid: 'sensor-1',
        started_at: 1_767_225_600_000,
        status: 'active',
        lines: 0,
        bytes: 0,
        kept_lines: 0
      }
    },
    run: (context, { body }) => {
      const { clientid, topic, ip_address, payload, max_payload_bytes, duration_s = DEFAULT_DURATION_S } = body;
      if (clientid === undefined && topic === undefined && ip_address === undefined)
        throw new Fault(
          'missingParameter',
          'give at least one of "clientid", "topic" and "ip_address"; the topic "#" selects all messages',
          'clientid'
        );
      const trace = start(context, {
        ...(clientid === undefined ? {} : { clientId: clientid }),
        ...(topic === undefined ? {} : { topic }),
        ...(ip_address === undefined ? {} : { address: ip_address }),
        ...(payload === undefined ? {} : { payload }),
        ...(max_payload_bytes === undefined ? {} : { maxPayloadBytes: max_payload_bytes }),
        durationMs: duration_s * 1_000
      });
      return shown(context, trace);
    }
  }),
  operation({
    name: 'lookup_trace',
    method: 'GET',
    path: '/x/traces/:id',
    ctl: 'traces show NUMBER',
    descr: 'Look up a trace',
    example: { params: { id: '1' } },
    data: TRACE,
    run: (context, { params: { id } }) => shown(context, traceOf(context, id))
  }),
  operation({
    name: 'stop_trace',
    method: 'POST',
    path: '/x/traces/:id/stop',
    ctl: 'traces end NUMBER',
    descr: 'Stop a trace and keep its lines; has no effect on one that has ended',
    example: { params: { id: '1' } },
    data: TRACE,
    run: (context, { params: { id } }) => {
      const trace = traceOf(context, id);
      context.broker.monitor.traces.stop(trace.id);
      return shown(context, trace);
    }
  }),
  operation({
    name: 'delete_trace',
    method: 'DELETE',
    path: '/x/traces/:id',
    ctl: 'traces stop NUMBER',
    descr: 'Stop a trace and forget its lines',
    example: { params: { id: '1' } },
    run: (context, { params: { id } }) => {
      context.broker.monitor.traces.delete(traceOf(context, id).id);
    }
  }),
  operation({
    name: 'list_trace_lines',
    method: 'GET',
    path: '/x/traces/:id/lines',
    ctl: 'traces lines NUMBER',
    descr: 'List the last lines of a trace, the oldest first',
    showsPayloads: true,
    example: { params: { id: '1' } },
    paged: 100,
    hasCursor: true,
    data: listOf(LINE),
    run: (context, { params: { id } }) => {
      const { traces } = context.broker.monitor;
      const { limit, skip, cursor } = context.page;
      const trace = traceOf(context, id);
      const count = traces.lineCount(trace.id);
      if (count === undefined)
        throw new Fault(
          'unknownRecord',
          `the lines of trace ${id} are not kept: the app that runs the broker has begun it`
        );
      const lines = traces.lines(trace.id, numberIn(cursor), skip + limit + 1).slice(skip);
      const rows = lines.slice(0, limit);
      const next = lines.length > limit ? `${rows[limit - 1].number}` : undefined;
      return new Listing<KeptLine>(rows, ({ number, line }) => ({ number, record: JSON.parse(line) }), {
        count,
        cursor: next
      });
    }
  })
];
