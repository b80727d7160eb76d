import { FOUND_KINDS } from '../../../../lib/adapter.ts';
import type { FoundEntry, FoundKind } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { flag, integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { renamed } from '../../codes.ts';
import { type Operation, operation } from '../../operation.ts';

/** The kinds as they are written. */
const SHOWN_KINDS = {
  client: 'client',
  topic: 'topic',
  subscription: 'subscription',
  rule: 'rule',
  streamRule: 'stream_rule'
} as const satisfies Readonly<Record<FoundKind, string>>;

const FOUND = objectOf({
  kind: oneOf(
    FOUND_KINDS.map((kind) => SHOWN_KINDS[kind]),
    'topic: it has a retained message; subscription: a topic filter that has subscriptions; rule: over events of the broker'
  ),
  name: text('The client id, the topic, the topic filter without a share prefix, or the id of the rule'),
  detail: text('The state of a client or a stream rule, the size of a message, the description of a rule; may be empty')
});

function shown({ kind, name, detail }: FoundEntry) {
  return { kind: SHOWN_KINDS[kind], name, detail };
}

/** The search by name. */
export const SEARCH: readonly Operation[] = [
  operation({
    name: 'search_names',
    method: 'GET',
    path: '/x/search',
    ctl: { 'search TEXT=q --each=limit': 'kind name detail' },
    descr: 'Find clients, topics with retained messages, subscriptions and rules by name',
    query: objectOf({
      q: text(
        'The beginning of the name, or a pattern for the whole name in which * stands for any characters; at most 256 characters. The letters A to Z match in either case',
        { min: 1 }
      ),
      limit: optional(integer('Maximum number of entries of each kind', { default: 10, min: 1, max: 100 }))
    }),
    data: objectOf({
      is_complete: flag(
        'False if there are more entries of a kind, or if there are names beyond the 10,000,000 that a search reads'
      ),
      entries: listOf(FOUND, 'One kind after the other; of each, an entry with exactly this name first')
    }),
    example: {
      query: { q: 'sensor-*' },
      data: {
        is_complete: true,
        entries: [
          { kind: 'client', name: 'sensor-1', detail: 'connected' },
          { kind: 'client', name: 'sensor-2', detail: 'disconnected' }
        ]
      }
    },
    faultOf: (error) => {
      const named = renamed(error, { text: 'q', limit: 'limit' });
      return named instanceof Fault ? named : undefined;
    },
    run: async ({ broker }, { query: { q, limit } }) => {
      const { isComplete, entries } = await broker.directory.search({ text: q, limit });
      return { is_complete: isComplete, entries: entries.map(shown) };
    }
  })
];
