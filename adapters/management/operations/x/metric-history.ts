import { HISTORY_METRICS } from '../../../../lib/adapter.ts';
import { integer, listOf, number, objectOf, optional, recordOf, text } from '../../../rest/kit/index.ts';
import { type Operation, operation } from '../../operation.ts';

const DEFAULT_NAMES = [
  'messages.received',
  'messages.sent',
  'messages.dropped',
  'delivery.dropped',
  'bytes.received',
  'bytes.sent',
  'client.connected',
  'client.disconnected',
  'connections.count',
  'sessions.count',
  'subscriptions.count',
  'retained.count',
  'messages.queued',
  'process.memory',
  'process.loopDelay'
];

const SELECTION = objectOf({
  names: optional(
    text(
      `Names of counters and gauges, separated by commas: ${HISTORY_METRICS.join(', ')}. Default: ${DEFAULT_NAMES.join(', ')}`
    )
  ),
  from: optional(number('The first time, in milliseconds since 1970. Default: all samples'))
});
const SERIES = objectOf({
  at: listOf(integer(), 'The times of the samples, in milliseconds since 1970'),
  series: recordOf(listOf(number()), 'By name the values at these times: counters per second, gauges as they were')
});

/** Counters and gauges of the last hour. */
export const METRIC_HISTORY: readonly Operation[] = [
  operation({
    name: 'list_figures',
    method: 'GET',
    path: '/x/figures',
    ctl: 'figures [NAMES=names]',
    descr: 'Counters and gauges of the last hour, every ten seconds',
    query: SELECTION,
    data: SERIES,
    example: { query: { names: 'messages.received,connections.count' } },
    run: ({ broker }, { query: { names, from } }) => {
      const wanted = names === undefined ? DEFAULT_NAMES : [...new Set(names.split(',').map((name) => name.trim()))];
      return broker.monitor.metricHistory.read(wanted, from);
    }
  })
];
