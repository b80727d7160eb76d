// A row for each operation. Sentences of answers and faults are those of the documented interface, down to their full
// stops. What a rule is and whether it can run is decided by the stream service.

import * as Type from 'typebox';
import type { NotFound, PlanNode, StreamsApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import {
  anyObject,
  componentOf,
  flag,
  integer,
  listOf,
  objectOf,
  oneOf,
  optional,
  recordOf,
  SAMPLE_AT,
  SAMPLE_CUT,
  STATEMENT_ERROR,
  text
} from '../../rest/kit/index.ts';
import { hasCode } from '../faults.ts';
import { type Operation, operation } from '../operation.ts';
import { indentedJson, jsonText, sorted, withWarnings } from '../reply.ts';
import {
  CHANGED_RULE,
  checkRule,
  extras,
  isNotFound,
  METRICS,
  NEW_RULE,
  planFault,
  RULE,
  RULE_ROW,
  ruleInput,
  shownMetrics,
  shownRule,
  shownStatus,
  unknownRule
} from '../rule-forms.ts';

const ID = 'r1';
const RULE_BODY = { id: ID, sql: 'SELECT * FROM demo', actions: [{ log: {} }] };

const NODE = text('The node, as in the status');
const TOPIC = optional(text('The topic of the MQTT message: its first 256 characters; absent: it is not known'));
const SAMPLES = objectOf({
  inputs: listOf(
    objectOf({ at: SAMPLE_AT, node: NODE, values: anyObject('The columns'), cut: SAMPLE_CUT }),
    'The last rows that sources have read'
  ),
  outputs: listOf(
    objectOf({ at: SAMPLE_AT, rows: listOf(anyObject(), 'The rows'), cut: SAMPLE_CUT }),
    'The last outputs'
  ),
  errors: listOf(objectOf({ at: SAMPLE_AT, node: NODE, message: text('The error'), topic: TOPIC }), 'The last errors'),
  rejected: listOf(
    objectOf({
      at: SAMPLE_AT,
      node: NODE,
      reason: oneOf(
        ['WHERE', 'FILTER', 'HAVING', 'late'],
        'The clause that was not true; late: in event time, the row came too late'
      ),
      values: anyObject('The values that the condition has read; of a late row its columns'),
      topic: TOPIC,
      cut: SAMPLE_CUT
    }),
    'The last rows that a condition has excluded, or that came too late'
  )
});

const isNotFoundShort = (id: string) => `Rule ${id} is not found`;

/** The fault for creating or changing a rule with the statement of the body. */
function planFaultOf(error: unknown, sql: string, id: string): Fault | undefined {
  if (hasCode(error, 'STREAM_RULE_EXISTS')) return new Fault('rule', `Item ${id} already exists`);
  return planFault(error, sql);
}

function notJson(body: string, reason: string): string {
  return `Parse rule ${body} error : ${reason}.`;
}

/** Define an operation that starts, stops or restarts a rule. */
function command(name: 'start' | 'stop' | 'restart', descr: string, sentence: (id: string) => string): Operation {
  return operation({
    name: `${name}Rule`,
    method: 'POST',
    path: `/rules/:id/${name}` as '/rules/:id/start',
    ctl: `stream ${name} ID`,
    descr,
    errorPrefix: `${name} rule error`,
    example: { params: { id: ID }, data: sentence(ID) },
    faultOf: (error, input) =>
      unknownRule(isNotFound)(error, input) ?? (name === 'stop' ? undefined : planFault(error, undefined)),
    run: async ({ streams }, { params: { id } }) => {
      await streams.rules[name](id);
      return sentence(id);
    }
  });
}

/**
 * Get a rule.
 * @throws Fault with the message of the operation
 */
async function ruleOf(streams: StreamsApi, id: string, sentence: string) {
  const rule = await streams.rules.get(id);
  if (rule === undefined) throw new Fault('notFound', sentence);
  return rule;
}

/** The lines of a plan: a node, and its inputs indented by one level. */
function planText({ name, about, inputs }: PlanNode, level = 0): string {
  const line = `${'\t'.repeat(level)}${jsonText({ op: name, info: about })}\n`;
  return line + inputs.map((input) => planText(input, level + 1)).join('');
}

/** The rules. */
export const RULES: readonly Operation[] = [
  operation({
    name: 'createRule',
    method: 'POST',
    path: '/rules',
    ctl: 'stream add ID=id [FILE] --sql --action=actions',
    descr: 'Create a rule, and start it',
    errorPrefix: 'Create rule error',
    body: NEW_RULE,
    notJson: (body, reason) => `Create rule error: ${notJson(body, reason)}`,
    first: checkRule,
    status: 201,
    example: { body: RULE_BODY, data: 'Rule r1 was created successfully.' },
    faultOf: (error, { body: { sql, id } }) => planFaultOf(error, sql, id),
    run: async ({ streams }, { body }) => {
      const { id, warnings } = await streams.rules.create(ruleInput(body, body.id));
      return withWarnings(`Rule ${id} was created successfully.`, warnings);
    }
  }),
  operation({
    name: 'listRules',
    method: 'GET',
    path: '/rules',
    ctl: { 'stream list': 'id status name tags' },
    descr: 'List the rules with their status, sorted by id',
    data: listOf(RULE_ROW),
    example: { data: [{ id: ID, status: 'Running' }] },
    run: async ({ streams }) =>
      (await streams.rules.list()).map((rule) => ({ id: rule.id, status: rule.status, ...extras(rule) }))
  }),
  operation({
    name: 'describeRule',
    method: 'GET',
    path: '/rules/:id',
    ctl: 'stream show ID',
    descr: 'Describe a rule',
    errorPrefix: 'describe rule error',
    data: RULE,
    example: { params: { id: ID } },
    run: async ({ streams }, { params: { id } }) => shownRule(await ruleOf(streams, id, isNotFound(id)))
  }),
  operation({
    name: 'updateRule',
    method: 'PUT',
    path: '/rules/:id',
    ctl: 'stream change ID [FILE] --sql --action=actions',
    descr: 'Replace a rule; if the new one is invalid, the old one continues',
    errorPrefix: 'Update rule error',
    body: CHANGED_RULE,
    notJson: (body, reason) => `Update rule error: ${notJson(body, reason)}`,
    first: (body) => checkRule(body, false),
    example: { params: { id: ID }, body: RULE_BODY, data: 'Rule r1 was updated successfully.' },
    faultOf: (error, { params: { id }, body }) =>
      hasCode(error, 'STREAM_RULE_NOT_FOUND')
        ? new Fault('notFound', `not found this rule: ${isNotFound(id)}`, undefined, { isWhole: true })
        : planFaultOf(error, body.sql, id),
    run: async ({ streams }, { params: { id }, body }) => {
      if (body.id !== undefined && body.id !== '' && body.id !== id)
        throw new Fault('rule', 'Name is not consistent with rule id.');
      const { warnings } = await streams.rules.update(id, ruleInput(body, id));
      return withWarnings(`Rule ${id} was updated successfully.`, warnings);
    }
  }),
  operation({
    name: 'dropRule',
    method: 'DELETE',
    path: '/rules/:id',
    ctl: 'stream remove ID',
    descr: 'Drop a rule',
    errorPrefix: 'delete rule error',
    example: { params: { id: ID }, data: 'Rule r1 is dropped.' },
    faultOf: unknownRule((id) => `${id} is not found`),
    run: async ({ streams }, { params: { id } }) => {
      await streams.rules.delete(id);
      return `Rule ${id} is dropped.`;
    }
  }),
  command('start', 'Start a rule; no effect if it is running', (id) => `Rule ${id} was started`),
  command('stop', 'Stop a rule; it stays defined', (id) => `Rule ${id} was stopped.`),
  command('restart', 'Stop a rule, and start it again', (id) => `Rule ${id} was restarted`),
  operation({
    name: 'ruleStatus',
    method: 'GET',
    path: '/rules/:id/status',
    descr: 'The metrics of a rule as JSON in text; if it does not run, "Stopped: REASON"',
    errorPrefix: 'get rule status error',
    example: { params: { id: ID } },
    faultOf: unknownRule(isNotFoundShort),
    run: async ({ streams, hidesPayloads }, { params: { id } }) => {
      const { state, text, metrics } = await streams.rules.status(id);
      return state === 'connected' ? indentedJson(shownMetrics(metrics, hidesPayloads)) : text;
    }
  }),
  operation({
    name: 'ruleStatusV2',
    method: 'GET',
    path: '/v2/rules/:id/status',
    ctl: 'stream status ID',
    descr: 'The state and the metrics of a rule',
    errorPrefix: 'get rule status error',
    data: METRICS,
    example: { params: { id: ID } },
    faultOf: unknownRule(isNotFoundShort),
    run: async ({ streams, hidesPayloads }, { params: { id } }) =>
      shownStatus(await streams.rules.status(id), hidesPayloads)
  }),
  operation({
    name: 'allRuleStatus',
    method: 'GET',
    path: '/rules/status/all',
    descr: 'The state and the metrics of all rules, by id',
    errorPrefix: 'get rules status error',
    data: recordOf(METRICS),
    example: {},
    run: async ({ streams, hidesPayloads }) => {
      const entries: [string, object][] = [];
      for (const { id } of await streams.rules.list()) {
        // the rule may be deleted meanwhile
        const status = await streams.rules.status(id).catch((error: NotFound) => {
          if (hasCode(error, 'STREAM_RULE_NOT_FOUND')) return undefined;
          throw error;
        });
        if (status !== undefined) entries.push([id, shownStatus(status, hidesPayloads)]);
      }
      return Object.fromEntries(entries);
    }
  }),
  operation({
    name: 'ruleTopology',
    method: 'GET',
    path: '/rules/:id/topo',
    ctl: { 'stream topology ID': 'node next' },
    descr: 'The nodes of a rule and the successors of each',
    errorPrefix: 'get rule topo error',
    data: componentOf('Topology', 'The nodes of a running rule', {
      sources: listOf(text(), 'The entry points'),
      edges: recordOf(listOf(text()), 'The successors of each node')
    }),
    example: { params: { id: ID } },
    faultOf: (error, input) =>
      hasCode(error, 'STREAM_RULE_NOT_STARTED')
        ? new Fault('rule', `Fail to get rule ${input.params.id}'s topo, make sure the rule has been started before`)
        : unknownRule(isNotFoundShort)(error, input),
    run: async ({ streams }, { params: { id } }) => {
      const { sources, edges } = await streams.rules.topology(id);
      return { sources, edges: sorted(edges) };
    }
  }),
  operation({
    name: 'validateRule',
    method: 'POST',
    path: '/rules/validate',
    ctl: 'stream validate ID=id [FILE] --sql --action=actions',
    descr: 'Check a rule without creating it; an invalid one is answered with 422',
    errorPrefix: 'validate rule error',
    body: NEW_RULE,
    notJson: (body, reason) => `validate rule error: ${notJson(body, reason)}`,
    first: checkRule,
    isReading: true,
    refusal: 422,
    data: objectOf({
      sources: listOf(text(), 'The streams and tables of the rule'),
      valid: Type.Literal(true, { description: 'An invalid rule is answered with 422' }),
      warnings: optional(listOf(text(), 'The properties of actions that have no effect; absent if there are none'))
    }),
    example: { body: { ...RULE_BODY, id: 'r2' }, data: { sources: ['demo'], valid: true } },
    faultOf: (error, { body }) => planFaultOf(error, body.sql, body.id),
    run: async ({ streams }, { body }) => {
      const { sources, warnings } = await streams.rules.validate(ruleInput(body, body.id));
      return { sources, valid: true, ...(warnings && { warnings }) };
    }
  }),
  operation({
    name: 'validateStatement',
    method: 'POST',
    path: '/x/rules/validate',
    ctl: 'stream check [FILE] --sql',
    descr: 'Check the statement of a rule, CREATE STREAM or CREATE TABLE: its errors with their places are the answer',
    isReading: true,
    body: objectOf({ sql: text('The statement') }),
    data: objectOf({
      valid: flag('True if there are no errors'),
      errors: listOf(STATEMENT_ERROR, 'The errors, in the order of their places'),
      sources: listOf(text(), 'The streams and tables; empty if the statement is not valid, as the columns'),
      columns: recordOf(listOf(text()), 'The columns that it reads, by stream or table; "*": all of them'),
      defines: optional(
        objectOf(
          { kind: oneOf(['stream', 'table'], 'The kind'), name: text('The name') },
          { description: 'The stream or the table of CREATE; absent for other statements, and if there are errors' }
        )
      )
    }),
    example: {
      body: { sql: 'SELECT * FROM demo WHERE nosuch(1)' },
      data: { valid: false, errors: [{ line: 1, column: 26, length: 6 }], sources: [] }
    },
    run: async ({ streams }, { body: { sql } }) => {
      const { errors, sources, columns, defines } = await streams.rules.validateStatement(sql);
      return { valid: errors.length === 0, errors, sources, columns, ...(defines && { defines }) };
    }
  }),
  operation({
    name: 'getRuleSamples',
    method: 'GET',
    path: '/rules/:id/samples',
    ctl: 'stream samples ID',
    showsPayloads: true,
    descr:
      'The last five inputs, outputs and errors of a rule, and rows that it has excluded; at most one of each is taken in 100 ms',
    errorPrefix: 'get rule samples error',
    data: SAMPLES,
    example: { params: { id: ID }, data: { errors: [] } },
    faultOf: unknownRule(isNotFoundShort),
    run: async ({ streams }, { params: { id } }) => {
      const { inputs, outputs, errors, rejected } = await streams.rules.samples(id);
      return {
        inputs: inputs.map(({ isCut: cut, ...sample }) => ({ ...sample, cut })),
        outputs: outputs.map(({ isCut: cut, ...sample }) => ({ ...sample, cut })),
        errors: errors.map((sample) => ({ ...sample })),
        rejected: rejected.map(({ isCut: cut, ...sample }) => ({ ...sample, cut }))
      };
    }
  }),
  operation({
    name: 'explainRule',
    method: 'GET',
    path: '/rules/:id/explain',
    ctl: 'stream explain ID',
    descr: 'The plan of a rule, a line of JSON for each node; with "Accept: application/json" as a tree',
    errorPrefix: 'explain rule error',
    data: componentOf('PlanNode', 'A node of the plan of a rule', {
      name: text('Name of the node in the status'),
      about: text('The operation of the node'),
      inputs: listOf(anyObject(), 'The nodes before it')
    }),
    contentType: 'text/plain',
    example: { params: { id: ID } },
    faultOf: (error, input) => unknownRule(isNotFound)(error, input) ?? planFault(error, undefined),
    run: async ({ streams, wantsJson }, { params: { id } }) => {
      const plan = await streams.rules.explain(id);
      return wantsJson ? plan : planText(plan);
    }
  }),
  operation({
    name: 'testRule',
    method: 'POST',
    path: '/ruletest',
    ctl: 'stream test [FILE] --sql',
    descr: 'Run a query over sample rows, without any sink',
    errorPrefix: 'test rule error',
    isReading: true,
    hasExactNumbers: true,
    body: objectOf({
      id: optional(text('Ignored')),
      sql: text('The query'),
      options: optional(anyObject('Options of the rule')),
      rows: optional(
        listOf(
          objectOf({
            stream: text('Name of the stream or table'),
            values: anyObject('The columns'),
            at: optional(
              integer('The time of arrival, in milliseconds. Default: that of the previous row', { min: 0 })
            ),
            meta: optional(anyObject('The values of meta()'))
          }),
          'The rows, in the order of their arrival',
          { maxItems: 10_000 }
        )
      ),
      mockSource: optional(
        recordOf(
          objectOf({
            data: listOf(anyObject(), 'The columns of each row', { maxItems: 10_000 }),
            interval: optional(integer('Milliseconds from row to row', { min: 0 })),
            loop: optional(flag('Ignored: each row is used once'))
          }),
          'Rows by the name of the stream, instead of "rows"'
        )
      )
    }),
    data: componentOf('RuleTest', 'The result of a test', {
      emissions: listOf(listOf(anyObject()), 'The rows of each emission'),
      errors: listOf(text(), 'The errors of rows')
    }),
    example: {
      body: { sql: 'SELECT * FROM demo', rows: [{ stream: 'demo', values: { a: 1 } }] },
      data: { emissions: [[{ a: 1 }]], errors: [] }
    },
    faultOf: (error, { body }) => planFault(error, body.sql),
    run: async ({ streams }, { body: { sql, options, rows, mockSource } }) => {
      const mocked = Object.entries(mockSource ?? {}).flatMap(([stream, { data, interval = 1_000 }]) =>
        data.map((values, at) => ({ stream, values, at: at * interval }))
      );
      const given = rows ?? mocked.sort((a, b) => a.at - b.at);
      const { emissions, errors } = await streams.rules.test(
        { sql, ...(options === undefined ? {} : { options }) },
        given
      );
      return { emissions, errors };
    }
  })
];
