// The changes of releases after which stored definitions behave differently.
//
// To add one, add a row to the list of the kind of definition that it affects: `id` is a short name, `since` is the current
// `DEFINITIONS_VERSION`, `text` a clause about the current behaviour (the log line lists it with the names of the definitions), and
// `isAffected` tells whether a definition behaves differently than in the release before. It receives the stored form of the definition,
// and `stored`, which finds what the definition refers to and parses its statement. Prefer a definition too many to one too few, but do not
// count those that the change cannot affect. Definitions that are no longer valid need no row: they are kept, stopped, and name the reason
// in their status.
//
// Then add a line to "Upgrading from ..." of CHANGELOG.md, and to test/broker/upgrade-changes.test.ts one definition that is affected and
// one that is not. The rows are loaded only when a store of an earlier release is opened.
import type { ResourceDefinition, RuleDefinition } from '../../../rules/definition.ts';
import { sourceTypeName } from '../../../streams/sources/stream-settings.ts';
import type { StreamDefinition, StreamRuleDefinition } from '../../../streams/types.ts';
import type { StoredConnector } from '../../configuration/connectors.ts';
import type { StoredDefinitions } from './stored-definitions.ts';

/** A change after which some definitions of a kind behave differently. */
export interface DefinitionChange<D> {
  /** Unique, for the tests. */
  readonly id: string;
  /** The version of the definitions that it came with, see `DEFINITIONS_VERSION`. */
  readonly since: number;
  /** A clause that describes how these definitions behave now. */
  readonly text: string;
  /** Tell whether a definition behaves differently. A definition for which it throws is not counted. */
  isAffected(definition: D, stored: StoredDefinitions): boolean;
}

/** The kinds of definitions, with their stored forms. */
export interface DefinitionKinds {
  /** Rules over events. */
  readonly rule: RuleDefinition;
  /** Resources of rules over events. */
  readonly resource: ResourceDefinition;
  readonly stream: StreamDefinition;
  readonly table: StreamDefinition;
  readonly 'stream rule': StreamRuleDefinition;
  /** Webhooks and bridges that were created at run time. */
  readonly connector: StoredConnector;
}

/** Functions of stream rules with changed results. */
const CHANGED_FUNCTIONS = [
  'event_time',
  'last_hit_count',
  'last_hit_time',
  'last_agg_hit_count',
  'last_agg_hit_time',
  'changed_cols'
];

/** The changes of each kind, in the order in which they are reported. */
export const CHANGES: { readonly [K in keyof DefinitionKinds]: readonly DefinitionChange<DefinitionKinds[K]>[] } = {
  rule: [
    {
      id: 'contains-topic-match',
      since: 3,
      text: 'contains_topic_match(list, filter) finds the topics of a list that a filter matches; before, the list had the filters',
      isAffected: ({ sql }) => /\bcontains_topic_match\s*\(/i.test(sql)
    },
    {
      id: 'placeholder-names',
      since: 3,
      text: 'placeholders in templates may have any characters in their names, such as "-"',
      isAffected: ({ actions }) => /\$\{(?![A-Za-z0-9_.]+\})[^{}]+\}/.test(JSON.stringify(actions))
    }
  ],
  resource: [
    {
      id: 'fail-on-status',
      since: 3,
      text: 'requests have failed if the status of the answer is not 2xx; fail_on_status was set to true',
      isAffected: ({ type }) => type === 'web_hook'
    }
  ],
  stream: [],
  table: [],
  'stream rule': [
    {
      id: 'rest-sink-certificates',
      since: 3,
      text: 'the sink rest verifies certificates unless insecureSkipVerify is true',
      isAffected: (rule, stored) =>
        stored.sinksOf(rule, 'rest').some(({ url, insecureSkipVerify }) => {
          return insecureSkipVerify === undefined && /^(https:|.*\{\{)/i.test(String(url));
        })
    },
    {
      id: 'influx-refusals',
      since: 3,
      text: 'the sinks of InfluxDB do not send again what the server has answered with 401 or 403',
      isAffected: (rule, stored) =>
        ['influx', 'influx2'].some((type) => stored.sinksOf(rule, type).some(({ enableCache }) => enableCache === true))
    },
    {
      id: 'stream-null-comparison',
      since: 3,
      text: 'comparisons with null are false, also !=, NOT IN and NOT BETWEEN',
      isAffected: (rule, stored) =>
        stored.expressionsOf(rule).some((node) => {
          if (node.type === 'binary') return ['=', '!=', '<=', '>='].includes(node.operator);
          return node.type === 'in' || node.type === 'between' || (node.type === 'case' && node.subject !== undefined);
        })
    },
    {
      id: 'stream-event-time-ends',
      since: 3,
      text: 'windows in event time do not have the rows at their end',
      isAffected: (rule, stored) =>
        rule.options?.isEventTime === true &&
        ['tumbling', 'hopping', 'session'].includes(stored.statement(rule).window?.kind ?? '')
    },
    {
      id: 'stream-state-window-keys',
      since: 3,
      text: 'STATEWINDOW has a state for each key of GROUP BY',
      isAffected: (rule, stored) => {
        const { window, groupBy } = stored.statement(rule);
        return window?.kind === 'state' && window.partitionBy.length === 0 && groupBy.length > 0;
      }
    },
    {
      id: 'stream-aliases',
      since: 3,
      text: 'an alias of SELECT can be used by columns that are written before it',
      isAffected: (rule, stored) => stored.usesLaterAlias(rule)
    },
    {
      id: 'stream-function-times',
      since: 3,
      text: 'event_time() of a group is the end of its window, last_hit_time() and last_agg_hit_time() are times of rows and windows, and changed_cols() compares with what was selected before',
      isAffected: (rule, stored) =>
        stored
          .expressionsOf(rule)
          .some((node) => node.type === 'call' && CHANGED_FUNCTIONS.includes(node.name.toLowerCase()))
    },
    {
      id: 'stream-retained-messages',
      since: 3,
      text: 'retained messages of this broker reach rules that start, and meta(retain) is true for them only',
      isAffected: (rule, stored) => stored.sourcesOf(rule).some((source) => sourceTypeName(source) === 'mqtt')
    },
    {
      id: 'stream-several-topics',
      since: 3,
      text: 'a comma in DATASOURCE separates topics',
      isAffected: (rule, stored) =>
        stored
          .sourcesOf(rule)
          .some((source) => sourceTypeName(source) === 'mqtt' && source.options.DATASOURCE?.includes(',') === true)
    },
    {
      id: 'file-sink-folder',
      since: 3,
      text: 'relative paths of the sink file are in the folder "files" of the stream service, and others need the option folders',
      isAffected: (rule, stored) => stored.sinksOf(rule, 'file').length > 0
    },
    {
      id: 'file-source-folder',
      since: 3,
      text: 'relative paths of the source file are in the folder "files" of the stream service, and others need the option folders',
      isAffected: (rule, stored) => stored.sourcesOf(rule).some((source) => sourceTypeName(source) === 'file')
    },
    {
      id: 'mqtt-source-session',
      since: 3,
      text: 'streams of another MQTT server have a session there for rules with qos 1 and 2',
      isAffected: (rule, stored) =>
        (rule.options?.qos ?? 0) > 0 &&
        stored
          .sourcesOf(rule)
          .some((source) => sourceTypeName(source) === 'mqtt' && (source.options.CONF_KEY ?? '') !== '')
    }
  ],
  connector: [
    {
      id: 'webhook-without-rules',
      since: 3,
      text: 'a webhook with the setting web.hook.api.url and no rule sends nothing',
      isAffected({ kind, settings }) {
        const names = Object.keys(settings).map((name) => name.replace(/^(web\.)?hook\./, ''));
        return kind === 'webhook' && names.includes('api.url') && !names.some((name) => /^rule(s$|\.)/.test(name));
      }
    }
  ]
};
