import type { TopicLevel } from '../../../../lib/index.ts';
import { flag, integer, listOf, objectOf, optional, text } from '../../../rest/kit/index.ts';
import { Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const LEVEL = objectOf({
  level: text('The name; + and # are wildcards of topic filters'),
  topic: text('The topic or topic filter that ends here'),
  prefix: text('The parameter "prefix" of the level below'),
  retained: flag('True if the topic has a retained message'),
  subscribed: flag('True if there are subscriptions with this topic filter'),
  retained_below: integer('Number of topics below this one that have a retained message'),
  subscribed_below: integer('Number of topic filters below this one that have subscriptions')
});

function shown({ level, topic, isRetained, isSubscribed, retainedBelow, subscribedBelow }: TopicLevel) {
  return {
    level,
    topic,
    prefix: `${topic}/`,
    retained: isRetained,
    subscribed: isSubscribed,
    retained_below: retainedBelow,
    subscribed_below: subscribedBelow
  };
}

/** The tree of topics. */
export const TOPICS: readonly Operation[] = [
  operation({
    name: 'list_topic_levels',
    method: 'GET',
    path: '/x/topics',
    ctl: { 'topics [PREFIX=prefix]': 'level topic retained subscribed retained_below subscribed_below' },
    descr: 'List one level of the topic tree: topics that are retained, and topic filters that are subscribed to',
    paged: 100,
    hasCursor: true,
    query: objectOf({
      prefix: optional(text('The topic of the level above, with or without a slash at the end. Default: none'))
    }),
    data: listOf(LEVEL),
    example: {
      query: { prefix: 'sensors/1' },
      data: [
        {
          level: 'temperature',
          topic: 'sensors/1/temperature',
          prefix: 'sensors/1/temperature/',
          retained: true,
          subscribed: false,
          retained_below: 0,
          subscribed_below: 0
        }
      ]
    },
    run: async ({ broker, page: { limit, skip, cursor } }, { query: { prefix = '' } }) => {
      const above = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
      const page = await broker.directory.levels({ prefix: above, limit, skip, cursor });
      return new Listing(page.entries, shown, page);
    }
  })
];
