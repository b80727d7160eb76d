import * as Type from 'typebox';
import type { TopicLevel } from '../../../../lib/index.ts';
import { Listing } from '../../listing.ts';
import { type Operation, operation } from '../../operation.ts';

const LEVEL = Type.Object({
  level: Type.String({ description: 'The name; + and # are wildcards of topic filters' }),
  topic: Type.String({ description: 'The topic or topic filter that ends here' }),
  prefix: Type.String({ description: 'The parameter "prefix" of the level below' }),
  retained: Type.Boolean({ description: 'True if the topic has a retained message' }),
  subscribed: Type.Boolean({ description: 'True if there are subscriptions with this topic filter' }),
  retained_below: Type.Integer({ description: 'Number of topics below this one that have a retained message' }),
  subscribed_below: Type.Integer({ description: 'Number of topic filters below this one that have subscriptions' })
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
    query: Type.Object({
      prefix: Type.Optional(
        Type.String({ description: 'The topic of the level above, with or without a slash at the end. Default: none' })
      )
    }),
    data: Type.Array(LEVEL),
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
      return new Listing(page.entries, { count: page.count, cursor: page.cursor }, shown);
    }
  })
];
