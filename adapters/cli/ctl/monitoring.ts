// A row for each action: `usage` is parsed for its words and parameters, `columns` are those of the table on a
// terminal; elsewhere each row is a line of JSON with all its fields. Rows only make requests; what is allowed is
// checked by the broker.

import type { Action, ActionContext } from './action.ts';
import { shownFields } from './output.ts';
import { decoded } from './trace-lines.ts';

const ALARM_COLUMNS = ['id', 'desc.severity', 'desc.title', 'desc.summary', 'desc.timestamp', 'clear_at'];
const TRACE_COLUMNS = ['id', 'status', 'started_at', 'clientid', 'topic', 'ip_address', 'lines', 'bytes', 'kept_lines'];
const TOPIC_COLUMNS = [
  'topic',
  'since',
  ...['in', 'out', 'dropped'].flatMap((name) => [`messages.${name}.count`, `messages.${name}.rate`])
];

/** The state of the broker, its counters and its records. */
export const MONITORING: readonly Action[] = [
  {
    usage: 'nodes',
    about: 'list the nodes',
    columns: ['node', 'node_status', 'version', 'uptime', 'connections', 'memory_used', 'load1'],
    run: ({ client }) => client.get('/nodes')
  },
  {
    usage: 'listeners',
    about: 'list the listeners',
    columns: ['protocol', 'listen_on', 'current_conns', 'max_conns'],
    run: async ({ client }) => (await client.get('/listeners')).flatMap(({ listeners }) => listeners)
  },
  {
    usage: 'alarms list',
    about: 'list the alarms that are raised now',
    columns: ALARM_COLUMNS.slice(0, -1),
    run: async ({ client }) => (await client.get('/alarms/present')).flatMap(({ alarms }) => alarms)
  },
  {
    usage: 'alarms history',
    about: 'list the alarms that have ended',
    columns: ALARM_COLUMNS,
    run: async ({ client }) => (await client.get('/alarms/history')).flatMap(({ alarms }) => alarms)
  },
  {
    usage: 'stats',
    about: 'print the current and the highest numbers of clients, sessions, subscriptions and so on',
    run: async ({ client }) => ({ record: (await client.get('/stats'))[0].stats })
  },
  {
    usage: 'metrics',
    about: 'print the counters',
    run: async ({ client }) => ({ record: (await client.get('/metrics'))[0].metrics })
  },
  {
    usage: 'figures [NAMES]',
    about: 'list counters (per second) and gauges of the last hour, every ten seconds; NAMES are separated by commas',
    run: async ({ client }, [names]) => {
      const { at, series } = await client.get('/x/figures', names === undefined ? {} : { query: { names } });
      const counters = Object.entries(series);
      return at.map((time, i) => ({
        at: time,
        ...Object.fromEntries(counters.map(([name, values]) => [name, values[i]]))
      }));
    }
  },
  {
    usage: 'drops list',
    about: 'list the last dropped messages, the newest first',
    flags: ['client', 'topic', 'reason'],
    columns: ['at', 'topic', 'qos', 'from_clientid', 'clientid', 'reason', 'count'],
    run: ({ client, flags: { client: clientid, topic, reason } }) =>
      // the broker checks the reason
      client.list('/x/drops', { query: { clientid, topic, reason: reason as 'expired' | undefined } })
  },
  {
    usage: 'drops clear',
    about: 'delete the list of dropped messages',
    run: ({ client }) => client.delete('/x/drops')
  },
  {
    usage: 'audit [OPERATION]',
    about: 'list the last changes that were made over management interfaces, the newest first',
    flags: ['failed'],
    columns: ['at', 'caller.id', 'address', 'operation', 'status', 'count', 'parameters'],
    run: ({ client, flags: { failed } }, [operation]) => client.list('/x/audit', { query: { operation, failed } })
  },
  {
    usage: 'events [NAMES]',
    about:
      'print events as they happen, until interrupted; NAMES are separated by commas. Default: all except client.ping and, without --topic, the events of messages',
    flags: ['client', 'topic', 'payload'],
    line: (row) => {
      const { at, event, ...fields } = row as { readonly at?: number; readonly event: string };
      const time = at === undefined ? '' : `${new Date(at).toISOString()} `;
      return `${time}${event} ${shownFields(fields)}`;
    },
    run: events
  },
  {
    usage: 'traces list',
    about: 'list the traces',
    columns: TRACE_COLUMNS,
    run: ({ client }) => client.get('/x/traces')
  },
  {
    usage: 'traces start',
    about: 'trace a client, an address, or the messages of a topic filter, and print the number of the trace',
    flags: ['client', 'topic', 'address', 'payload', 'seconds'],
    run: async ({ client, flags }) => {
      const { client: clientid, topic, address: ip_address, payload, seconds: duration_s } = flags;
      return { record: await client.post('/x/traces', { body: { clientid, topic, ip_address, payload, duration_s } }) };
    }
  },
  {
    usage: 'traces show NUMBER',
    about: 'show a trace',
    run: async ({ client }, [id]) => ({ record: await client.get('/x/traces/{id}', { params: { id } }) })
  },
  {
    usage: 'traces lines NUMBER',
    about: 'print the last lines of a trace, the oldest first',
    line: (row) => JSON.stringify((row as { readonly record: object }).record),
    run: ({ client }, [id]) => decoded(client.list('/x/traces/{id}/lines', { params: { id } }))
  },
  {
    usage: 'traces stop NUMBER',
    about: 'stop a trace and delete its lines',
    run: ({ client }, [id]) => client.delete('/x/traces/{id}', { params: { id } })
  },
  {
    usage: 'topic-figures list',
    about: 'list the topic filters whose messages are counted, with the counts',
    columns: TOPIC_COLUMNS,
    run: ({ client }) => client.list('/x/topic_figures')
  },
  {
    usage: 'topic-figures add FILTER',
    about: 'count the messages that a topic filter matches',
    run: ({ client }, [topic]) => client.post('/x/topic_figures', { body: { topic } })
  },
  {
    usage: 'topic-figures show FILTER',
    about: 'show all counts of a topic filter',
    run: async ({ client }, [topic]) => ({
      record: await client.get('/x/topic_figures/{topic}', { params: { topic } })
    })
  },
  {
    usage: 'topic-figures remove FILTER',
    about: 'stop counting messages for a topic filter',
    run: ({ client }, [topic]) => client.delete('/x/topic_figures/{topic}', { params: { topic } })
  },
  {
    usage: 'slow subscriptions',
    about: 'list the clients and topics whose messages take longest, if that is measured',
    columns: ['clientid', 'topic', 'latency_ms', 'count', 'at'],
    run: async ({ client, note }) => {
      const { enabled, subscriptions } = await client.get('/x/slow_subscriptions');
      if (!enabled) note('latencies are not measured; start with embermq ctl slow start');
      return subscriptions;
    }
  },
  {
    usage: 'slow start',
    about: 'start measuring how long messages take to subscribers',
    flags: ['threshold', 'places'],
    run: async ({ client, flags: { threshold: threshold_ms, places: limit } }) => {
      await client.put('/x/slow_subscriptions', { body: { threshold_ms, limit } });
      return undefined;
    }
  },
  {
    usage: 'slow stop',
    about: 'stop measuring how long messages take to subscribers, and delete the ranking',
    run: ({ client }) => client.delete('/x/slow_subscriptions')
  },
  {
    usage: 'slow consumers',
    about: 'list the clients that read more slowly than messages are sent to them',
    columns: ['clientid', 'stalled_since', 'unsent_bytes', 'queued_messages', 'queued_bytes'],
    run: ({ client }) => client.list('/x/slow_consumers')
  },
  {
    usage: 'store',
    about: 'show the size of the store, the space that is left, and its commits',
    flags: ['records'],
    run: async ({ client, flags: { records } }) => ({
      record: await client.get('/x/store', records ? { query: { records } } : {})
    })
  }
];

/** The server-sent events of the broker. */
async function* events(
  { client, flags, interruption }: ActionContext,
  [names]: readonly string[]
): AsyncGenerator<object, void> {
  const { client: clientid, topic, payload } = flags;
  const signal = interruption();
  const query = { names, clientid, topic, payload };
  let event = '';
  try {
    for await (const line of client.lines('GET', '/x/events', { query, signal })) {
      const [, field, value] = /^(event|data): (.*)$/.exec(line) ?? [];
      if (field === 'event') event = value;
      else if (field === 'data') yield { event, ...(JSON.parse(value) as object) };
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
