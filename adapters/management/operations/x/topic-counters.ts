import { TOPIC_COUNTERS } from '../../../../lib/adapter.ts';
import type { TopicCountersRecord } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { integer, listOf, number, objectOf, text } from '../../../rest/kit/index.ts';
import { pageOf } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const TOPIC = text('The topic filter');
const COUNTS = objectOf({
  topic: TOPIC,
  since: integer('When counting has begun, in milliseconds since 1970'),
  ...Object.fromEntries(
    TOPIC_COUNTERS.flatMap((name) => [
      [`messages.${name}.count`, integer('Messages since then')],
      [`messages.${name}.rate`, number('Messages per second, in the last ten seconds')]
    ])
  )
});

function shown({ filter, since, counts, rates }: TopicCountersRecord): Record<string, unknown> {
  const shownCounts = TOPIC_COUNTERS.flatMap((name) => [
    [`messages.${name}.count`, counts[name]],
    [`messages.${name}.rate`, rates[name]]
  ]);
  return { topic: filter, since, ...Object.fromEntries(shownCounts) };
}

const unknown = (topic: string) =>
  new Fault('unknownRecord', `the messages of the topic filter "${topic}" are not counted`);

/** Counters of messages by topic filter. */
export const TOPIC_METRICS: readonly Operation[] = [
  operation({
    name: 'list_topic_figures',
    method: 'GET',
    path: '/x/topic_figures',
    ctl: {
      'topic-figures list':
        'topic since messages.in.count messages.in.rate messages.out.count messages.out.rate messages.dropped.count messages.dropped.rate'
    },
    descr: 'List the counters of all topic filters whose messages are counted',
    example: {},
    paged: 'max',
    hasCursor: true,
    data: listOf(COUNTS),
    run: ({ broker, page }) => {
      const all = broker.monitor.topicCounters.list().sort((a, b) => (a.filter < b.filter ? -1 : 1));
      return pageOf(all, page, shown, { keyOf: ({ filter }) => filter });
    }
  }),
  operation({
    name: 'add_topic_figures',
    method: 'POST',
    path: '/x/topic_figures',
    ctl: 'topic-figures add FILTER=topic',
    descr: 'Count the messages whose topic matches a topic filter',
    body: objectOf({ topic: TOPIC }),
    shown: COUNTS,
    example: { body: { topic: 'sensors/+/temperature' } },
    run: ({ broker }, { body: { topic } }) => broker.monitor.topicCounters.create(topic)
  }),
  operation({
    name: 'lookup_topic_figures',
    method: 'GET',
    path: '/x/topic_figures/:topic',
    ctl: 'topic-figures show FILTER',
    descr: 'Look up the counters of a topic filter',
    example: { params: { topic: 'sensors/#' } },
    data: COUNTS,
    run: ({ broker }, { params: { topic } }) => {
      const found = broker.monitor.topicCounters.get(topic);
      if (found === undefined) throw unknown(topic);
      return shown(found);
    }
  }),
  operation({
    name: 'delete_topic_figures',
    method: 'DELETE',
    path: '/x/topic_figures/:topic',
    ctl: 'topic-figures remove FILTER',
    descr: 'Stop counting for a topic filter',
    example: { params: { topic: 'sensors/#' } },
    run: ({ broker }, { params: { topic } }) => {
      if (!broker.monitor.topicCounters.delete(topic)) throw unknown(topic);
    }
  }),
  operation({
    name: 'clear_topic_figures',
    method: 'DELETE',
    path: '/x/topic_figures',
    descr: 'Stop counting for all topic filters',
    example: {},
    run: ({ broker }) => broker.monitor.topicCounters.clear()
  })
];
