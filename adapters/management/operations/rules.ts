// A row for each operation. A rule is checked by the broker; here only names are translated and faults given the
// documented sentences. Numbers of a test are read from the text of the body, because `JSON.parse` does not keep all
// digits. The audit log has the names of actions, not their parameters, which may be secrets.

import type { Static } from 'typebox';
import { nearest } from '../../../lib/adapter.ts';
import { type ActionInput, decodeJson, encodeJson, type RuleState, type RulesApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import {
  type AuditedNames,
  any,
  anyObject,
  anyOf,
  flag,
  listOf,
  objectOf,
  oneOf,
  optional,
  text
} from '../../rest/kit/index.ts';
import * as examples from '../examples.ts';
import { Listing } from '../listing.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { type Reply, replyWithJson } from '../reply.ts';
import { given, isTest, TEST } from './rule-faults.ts';
import { GIVEN_ACTION, RULE, shownRule } from './rule-forms.ts';

const SQL = text('The statement');
const FIELDS = {
  description: optional(text('A description', { default: '' })),
  enabled: optional(flag('True if events reach the rule', { default: true })),
  on_action_failed: optional(
    oneOf(['continue', 'stop'], 'continue: the later actions run even if one has failed; stop: they do not', {
      default: 'continue'
    })
  )
};
const GIVEN = objectOf({
  id: optional(
    text(
      'The id: 1 to 64 letters, digits, ":", "_", "-" and ".", except "." and ".."; default: "rule:" and 8 hexadecimal digits'
    )
  ),
  rawsql: optional(text('The statement', { documented: { isRequired: true } })),
  actions: optional(listOf(GIVEN_ACTION, 'The actions for each output; required except for a test')),
  ...FIELDS,
  test: TEST,
  ctx: optional(anyObject('For a test: columns of the event; others have the defaults of /rule_events'))
});
const CHANGE = objectOf({
  rawsql: optional(SQL),
  actions: optional(listOf(GIVEN_ACTION, 'All actions; if they are other ones, their metrics begin with 0')),
  ...FIELDS
});
const CONDITIONS = objectOf({
  enabled: optional(flag('Rules that are enabled, or that are not')),
  for: optional(text('Rules with this topic after FROM')),
  _like_id: optional(text('Rules whose id contains this')),
  _like_for: optional(text('Rules with a topic after FROM that contains this')),
  _match_for: optional(text('Rules with a topic after FROM that this topic filter matches')),
  _like_description: optional(text('Rules whose description contains this')),
  enable_paging: optional(flag('True if the list has pages; default: if "_page" or "_limit" is given'))
});

/** The audit entries of actions, without their parameters, which may be secret. */
function namesOf(actions: readonly Static<typeof GIVEN_ACTION>[] | undefined): AuditedNames {
  return { actions: actions?.map(({ name }) => name) };
}

/**
 * Get a rule.
 * @throws Fault notFound
 */
async function ruleOf({ rules }: { readonly rules: RulesApi }, id: string): Promise<RuleState> {
  const rule = await rules.get(id);
  if (rule === undefined) throw new Fault('notFound', `Rule ${id} Not Found`);
  return rule;
}

/**
 * Check that the actions named by a request exist. Those of fallbacks are checked with the rule.
 * @throws Fault badArguments
 */
async function checkActions(rules: RulesApi, actions: readonly Static<typeof GIVEN_ACTION>[]): Promise<void> {
  const names = (await rules.actions()).map(({ name }) => name);
  const unknown = actions.find(({ name }) => !names.includes(name));
  if (unknown === undefined) return;
  const near = nearest(unknown.name, names);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  throw new Fault('badArguments', `Action ${unknown.name || '""'} Not Found${hint}`);
}

/** The actions of a request. The broker checks their fallbacks. */
function readActions(actions: readonly Static<typeof GIVEN_ACTION>[]): readonly ActionInput[] {
  return actions as readonly ActionInput[];
}

/**
 * Evaluate a statement.
 * @returns the output; for FOREACH, a list of outputs
 * @throws Fault notFound
 */
async function tested(context: Context, sql: string, ctx: Readonly<Record<string, unknown>>): Promise<Reply> {
  const { result, isForeach, outputs, hints } = await context.broker.rules.test(sql, exact(context, ctx));
  if (result !== 'matched') throw new Fault('notFound', ['SQL Not Match', ...hints].join('; '), 'SQL Not Match');
  return replyWithJson(encodeJson(isForeach ? outputs : outputs[0]), hints);
}

/** The columns of a test with all digits of their numbers. */
function exact({ text }: Context, ctx: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (text === undefined) return ctx;
  // undefined: the body has more levels than `decodeJson` accepts
  const body = decodeJson(text) as { readonly ctx?: Readonly<Record<string, unknown>> } | undefined;
  return body?.ctx ?? ctx;
}

const params = { id: examples.RULE.id };

/** The rules of the broker. */
export const RULES: readonly Operation[] = [
  operation({
    name: 'create_rule',
    method: 'POST',
    path: '/rules',
    ctl: {
      'rules add [FILE] --id --sql=rawsql --action=actions --description': '',
      'rules test [FILE] test=true --sql=rawsql --ctx': ''
    },
    descr: 'Create a rule',
    query: objectOf({
      test: optional(flag('Evaluate the statement for an event, and make no rule')),
      rawsql: optional(text('As in the body'))
    }),
    body: GIVEN,
    shown: RULE,
    data: anyOf([RULE, anyObject('Of a test: the output'), listOf(any(), 'Of a test with FOREACH: the outputs')]),
    example: {
      body: {
        rawsql: 'SELECT payload.celsius AS celsius FROM "sensors/+/temperature" WHERE payload.celsius > 80',
        actions: [{ name: 'republish', params: { target_topic: 'alerts', target_qos: 1, payload_tmpl: 'hot' } }],
        description: 'Tells when a sensor is hot'
      }
    },
    audited: ({ body: { actions } }) => namesOf(actions),
    run: async (context, { query, body }) => {
      const { id, actions, description, enabled, on_action_failed, ctx = {} } = body;
      const { rules } = context.broker;
      const sql = given(query.rawsql ?? body.rawsql, 'rawsql');
      if (isTest(query.test ?? body.test)) return tested(context, sql, ctx);
      const wanted = given(actions, 'actions');
      await checkActions(rules, wanted);
      const rule = {
        id,
        sql,
        actions: readActions(wanted),
        description,
        isEnabled: enabled,
        onActionFailed: on_action_failed
      };
      return shownRule(await rules.create(rule), context);
    }
  }),
  operation({
    name: 'list_rules',
    method: 'GET',
    path: '/rules',
    ctl: { 'rules list [PART=_like_id]': 'id enabled state for matched passed failed description' },
    descr: 'A list of all rules',
    query: CONDITIONS,
    paged: 'max',
    data: listOf(RULE),
    example: { data: [examples.RULE] },
    run: async (context, { query }) => {
      const { broker, page, revision } = context;
      const all = await broker.rules.list({
        isEnabled: query.enabled,
        for: query.for,
        likeId: query._like_id,
        likeFor: query._like_for,
        matchFor: query._match_for,
        likeDescription: query._like_description
      });
      const shape = (rule: RuleState) => shownRule(rule, context);
      if (!(query.enable_paging ?? page.isGiven)) return new Listing(all, shape);
      const { skip, limit } = page;
      const hasNext = revision.hasNext ? skip + limit < all.length : undefined;
      return new Listing(all.slice(skip, skip + limit), shape, { count: all.length, hasNext });
    }
  }),
  operation({
    name: 'show_rule',
    method: 'GET',
    path: '/rules/:id',
    ctl: 'rules show ID',
    descr: 'Show a rule',
    data: RULE,
    example: { params, data: examples.RULE },
    run: async (context, { params: { id } }) => shownRule(await ruleOf(context.broker, id), context)
  }),
  operation({
    name: 'update_rule',
    method: 'PUT',
    path: '/rules/:id',
    ctl: {
      'rules change ID [FILE] --sql=rawsql --action=actions --description': '',
      'rules enable ID enabled=true': '',
      'rules disable ID enabled=false': ''
    },
    descr: 'Update a rule',
    body: CHANGE,
    data: RULE,
    example: { params, body: { enabled: false }, data: { ...examples.RULE, enabled: false, state: 'idle' } },
    audited: ({ body: { actions } }) => namesOf(actions),
    run: async (context, { params: { id }, body }) => {
      const { broker } = context;
      const { rawsql: sql, actions, description, enabled, on_action_failed } = body;
      await ruleOf(broker, id);
      if (actions !== undefined) await checkActions(broker.rules, actions);
      const change = {
        sql,
        actions: actions && readActions(actions),
        description,
        isEnabled: enabled,
        onActionFailed: on_action_failed
      };
      return shownRule(await broker.rules.update(id, change), context);
    }
  }),
  operation({
    name: 'delete_rule',
    method: 'DELETE',
    path: '/rules/:id',
    ctl: 'rules remove ID',
    descr: 'Delete a rule',
    example: { params },
    run: async ({ broker, isOriginal }, { params: { id } }) => {
      if (!(await broker.rules.delete(id)) && !isOriginal) throw new Fault('notFound', `Rule ${id} Not Found`);
    }
  }),
  operation({
    name: 'reset_metrics',
    method: 'PUT',
    path: '/rules/:id/reset_metrics',
    ctl: 'rules reset ID',
    descr: 'Set the metrics of a rule and its actions to 0',
    example: { params },
    run: async ({ broker }, { params: { id } }) => {
      await ruleOf(broker, id);
      await broker.rules.resetCounters(id);
    }
  })
];
