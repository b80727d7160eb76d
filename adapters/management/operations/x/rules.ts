import {
  encodeJson,
  NotFound,
  type RuleErrorSample,
  type RuleRejectedSample,
  type Value,
  type ValueObject
} from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import {
  any,
  anyObject,
  flag,
  integer,
  listOf,
  objectOf,
  oneOf,
  optional,
  SAMPLE_AT,
  SAMPLE_CUT,
  STATEMENT_ERROR,
  text
} from '../../../rest/kit/index.ts';
import * as examples from '../../examples.ts';
import { type Operation, operation } from '../../operation.ts';
import { replyWithJson } from '../../reply.ts';

const FUNCTION = objectOf({
  name: text('The name'),
  family: text('The group to which it belongs'),
  params: listOf(text(), 'The types of its arguments; "?": optional, "...": any number of them'),
  returns: text('The type of its result'),
  about: text('The purpose')
});
const COLUMN = objectOf({
  name: text('The name'),
  type: text('The type of its values: string, integer, number, boolean, list, object, any'),
  example: optional(any('A value; absent: there is none'))
});
const EVENT = objectOf({
  event: text('The name after FROM; of messages, a topic filter takes its place'),
  about: text('When it happens'),
  columns: listOf(COLUMN, 'The columns that a statement can read'),
  example: text('A statement')
});
const TOPIC = optional(text('Its topic: the first 256 characters'));
const CLIENT = optional(text('The client id'));
const SAMPLES = objectOf({
  inputs: listOf(
    objectOf({ at: SAMPLE_AT, event: text('The event'), columns: anyObject('Its columns'), cut: SAMPLE_CUT }),
    'The last five events that have reached the rule, the oldest first'
  ),
  outputs: listOf(objectOf({ at: SAMPLE_AT, output: any('The output'), cut: SAMPLE_CUT }), 'The last five outputs'),
  errors: listOf(
    objectOf({
      at: SAMPLE_AT,
      code: oneOf(
        ['PAYLOAD_NOT_JSON', 'SQL_FAILED', 'ACTION_FAILED'],
        'PAYLOAD_NOT_JSON: the statement reads values of a column that is not JSON; SQL_FAILED: the evaluation failed; ACTION_FAILED: an action'
      ),
      message: text('The error'),
      action: optional(text('The id of the action')),
      topic: TOPIC,
      clientid: CLIENT,
      columns: optional(anyObject('The columns of the event')),
      cut: SAMPLE_CUT
    }),
    'The last five errors of each code'
  ),
  rejected: listOf(
    objectOf({
      at: SAMPLE_AT,
      event: text('The event'),
      topic: TOPIC,
      clientid: CLIENT,
      columns: anyObject('The values that WHERE has read, as they are written in the statement'),
      cut: SAMPLE_CUT
    }),
    'The last five events that WHERE has excluded'
  ),
  excluded: integer('Number of events that WHERE has excluded')
});

/** The type of a column, from its value in a test. */
function typeOf(value: Value): string {
  if (value === undefined || value === null) return 'any';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'bigint') return 'integer';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
}

function shownError({ at, code, message, actionId: action, topic, clientId, columns, isCut }: RuleErrorSample) {
  return { at, code, message, action, topic, clientid: clientId, columns, cut: isCut };
}

function shownRejected({ at, event, topic, clientId: clientid, columns, isCut: cut }: RuleRejectedSample) {
  return { at, event, topic, clientid, columns, cut };
}

/** Operations for those who write rules and watch them. */
export const RULE_TOOLS: readonly Operation[] = [
  operation({
    name: 'list_rule_functions',
    method: 'GET',
    path: '/x/rules/functions',
    ctl: { 'rules functions': 'name params returns about' },
    descr: 'List the functions of statements, and the events with their columns, for the completion of an editor',
    data: objectOf({
      functions: listOf(FUNCTION, 'The functions of statements'),
      events: listOf(EVENT, 'The topics of events, and their columns')
    }),
    example: {},
    run: async ({ broker: { rules } }) => {
      const [functions, events] = await Promise.all([rules.functions(), rules.events()]);
      return {
        functions: functions.map(({ name, family, params, returns, about }) => ({
          ...{ name, family, params, returns, about }
        })),
        events: events.map(({ event, description, columns, examples: values, example }) => ({
          event,
          about: description.en,
          columns: columns.map((name) => ({ name, type: typeOf(values[name]), example: values[name] })),
          example
        }))
      };
    }
  }),
  operation({
    name: 'validate_rule_statement',
    method: 'POST',
    path: '/x/rules/validate',
    ctl: 'rules validate [FILE] --sql=rawsql',
    descr: 'Check a statement without making a rule: its errors with their places are the answer',
    isReading: true,
    body: objectOf({ rawsql: text('The statement') }, { additionalProperties: false }),
    data: objectOf({
      valid: flag('True if there are no errors'),
      errors: listOf(STATEMENT_ERROR, 'The errors, in the order of their places'),
      hints: listOf(text(), 'Possible mistakes in a valid statement'),
      foreach: flag('True if a test has a list of outputs'),
      topics: listOf(text(), 'The names after FROM; empty if the statement is not valid, as the two that follow'),
      events: listOf(text(), 'The events from which it selects'),
      columns: listOf(text(), 'The columns that it reads; "*": all of them')
    }),
    example: {
      body: { rawsql: 'SELECT clientid, abs(payload.x) AS x\nFROM "sensors/#" WHER x > 1' }
    },
    run: async ({ broker }, { body: { rawsql } }) => {
      const { errors, hints, isForeach, topics, events, columns } = await broker.rules.validate(rawsql);
      return { valid: errors.length === 0, errors, hints, foreach: isForeach, topics, events, columns };
    }
  }),
  operation({
    name: 'list_rule_samples',
    method: 'GET',
    path: '/x/rules/:id/samples',
    showsPayloads: true,
    ctl: 'rules samples ID',
    descr:
      'Show the last inputs, outputs and errors of a rule, and the last events that its WHERE has excluded; at most one of each is taken in 100 ms',
    data: SAMPLES,
    example: { params: { id: examples.RULE.id } },
    faultOf: (error) =>
      error instanceof NotFound ? new Fault('unknownRecord', error.message, 'not_found') : undefined,
    run: async ({ broker }, { params: { id } }) => {
      const { inputs, outputs, errors, rejected, excluded } = await broker.rules.samples(id);
      const data = {
        inputs: inputs.map(({ at, event, columns, isCut }) => ({ at, event, columns, cut: isCut })),
        outputs: outputs.map(({ at, output, isCut }) => ({ at, output, cut: isCut })),
        errors: errors.map(shownError),
        rejected: rejected.map(shownRejected),
        excluded
      };
      return replyWithJson(encodeJson(data as ValueObject), []); // integers keep their digits
    }
  })
];
