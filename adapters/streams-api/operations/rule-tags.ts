import type { StreamsApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { componentOf, flag, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { faultOf } from '../faults.ts';
import { type Operation, operation } from '../operation.ts';
import { isNotFound, unknownRule } from '../rule-forms.ts';

const TAGS = listOf(text(), 'The tags', { maxItems: 100 });
/** The documents of the original use both names. */
const BODY = objectOf({ tags: optional(TAGS), keys: optional(TAGS) });
const OUTCOMES = listOf(
  componentOf('BulkOutcome', 'The outcome for a rule', {
    ruleId: text('The id of the rule'),
    success: flag('True if it was started or stopped'),
    error: optional(text('The reason of the failure'))
  })
);

interface Tagged {
  readonly tags?: readonly string[];
  readonly keys?: readonly string[];
}

/** @throws Fault if the body has no tags */
function tagsOf({ tags, keys }: Tagged): readonly string[] {
  const given = tags ?? keys;
  if (given === undefined) throw new Fault('rule', 'the parameter "tags" is missing: a list of strings');
  return given;
}

/** Change the tags of a rule. */
function change(
  method: 'PUT' | 'PATCH' | 'DELETE',
  name: string,
  descr: string,
  changed: (old: readonly string[], given: readonly string[]) => readonly string[]
): Operation {
  return operation({
    name,
    method,
    path: '/rules/:id/tags',
    descr,
    errorPrefix: 'update rule tags error',
    body: BODY,
    example: { params: { id: 'r1' }, body: { tags: ['a'] }, data: 'Rule r1 tags were updated.' },
    faultOf: unknownRule(isNotFound),
    run: async ({ streams }, { params: { id }, body }) => {
      const given = tagsOf(body);
      await streams.rules.tag(id, (old) => [...new Set(changed(old, given))]);
      return `Rule ${id} tags were updated.`;
    }
  });
}

/** The ids of the rules that have all given tags. */
async function matching(streams: StreamsApi, tags: readonly string[]): Promise<string[]> {
  const rules = await streams.rules.list();
  return rules.filter((rule) => tags.every((tag) => rule.tags.includes(tag))).map(({ id }) => id);
}

/** Start or stop the rules with tags, one after the other; a failure does not affect the others. */
function defineBulk(command: 'start' | 'stop'): Operation {
  return operation({
    name: `bulk${command === 'start' ? 'Start' : 'Stop'}`,
    method: 'POST',
    path: `/rules/bulk${command}` as '/rules/bulkstart',
    descr: `${command === 'start' ? 'Start' : 'Stop'} the rules that have all of the tags`,
    errorPrefix: `bulk ${command} error`,
    body: BODY,
    data: OUTCOMES,
    example: { body: { tags: ['a'] }, data: [{ ruleId: 'r1', success: true }] },
    run: async ({ streams }, { body }) => {
      const outcomes: object[] = [];
      for (const ruleId of await matching(streams, tagsOf(body))) {
        try {
          await streams.rules[command](ruleId);
          outcomes.push({ ruleId, success: true });
        } catch (error) {
          if (faultOf(error) === undefined) throw error;
          outcomes.push({ ruleId, success: false, error: (error as Error).message });
        }
      }
      return outcomes;
    }
  });
}

/** Tags of rules, and operations on all rules with certain tags. */
export const RULE_TAGS: readonly Operation[] = [
  change('PUT', 'replaceTags', 'Replace the tags of a rule', (_old, given) => given),
  change('PATCH', 'addTags', 'Add tags to a rule', (old, given) => [...old, ...given]),
  change('DELETE', 'removeTags', 'Remove tags of a rule', (old, given) => old.filter((tag) => !given.includes(tag))),
  operation({
    name: 'matchTags',
    method: 'GET',
    path: '/rules/tags/match',
    descr: 'The ids of the rules that have all of the tags',
    errorPrefix: 'match rule tags error',
    query: objectOf({
      tags: optional(text('The tags, separated by commas; or in the body'))
    }),
    body: optional(BODY),
    data: objectOf({ rules: listOf(text(), 'The ids of the rules') }),
    example: { query: { tags: 'a' }, data: { rules: ['r1'] } },
    run: async ({ streams }, { query: { tags }, body }) => {
      const wanted = tags === undefined ? tagsOf(body ?? {}) : tags.split(',').map((tag) => tag.trim());
      return { rules: await matching(streams, wanted) };
    }
  }),
  defineBulk('start'),
  defineBulk('stop')
];
