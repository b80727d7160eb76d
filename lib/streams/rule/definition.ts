import { randomUUID } from 'node:crypto';
import { asError, InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import type {
  ActionInput,
  EmissionFunction,
  Properties,
  RuleOptions,
  StreamRuleDefinition,
  StreamRuleInput
} from '../types.ts';
import { invalid, readRuleOptions } from './rule-options.ts';

/** Maximum length of an id in bytes of UTF-8. */
const MAX_ID = 256;
/** Maximum number of sinks of a rule. */
const MAX_ACTIONS = 100;
/** Maximum number of tags of a rule. */
const MAX_TAGS = 100;

/** A sink of a rule. */
export interface PlannedAction {
  /** Type of the sink; undefined for a function of the app. */
  readonly type: string | undefined;
  /** Index of the element of `actions`, from 0. Several keys of one element share an index. */
  readonly index: number;
  readonly properties: Properties;
  readonly call: EmissionFunction | undefined;
}

/** The name of the node of a sink: `sink_mqtt_0`. */
export function sinkName({ type = 'function', index }: PlannedAction): string {
  return `sink_${type}_${index}`;
}

/** A validated rule definition. */
export interface ReadStreamRule {
  readonly definition: StreamRuleDefinition;
  readonly actions: readonly PlannedAction[];
  /** True if the rule is not persisted. */
  readonly isTemporary: boolean;
  /**
   * Set for a stored rule that is not valid in this version: the reason, and the JSON in the store. Such a rule never
   * runs.
   */
  readonly fault?: { readonly error: Error; readonly json: string };
}

/** The fields of a rule; `warnings` is that of a previous answer, and has no effect. */
const FIELDS = ['id', 'sql', 'actions', 'options', 'triggered', 'name', 'version', 'tags', 'temp', 'warnings'];

/**
 * Validate a rule. The sentences about missing parts are those of the original.
 * @param isOfApp whether the app itself created the rule, so that it needs no actions
 * @throws InvalidInput STREAM_RULE_INVALID, OPTION_UNKNOWN
 */
export function readStreamRule(
  input: StreamRuleInput,
  defaults: Partial<RuleOptions> = {},
  isOfApp = false
): ReadStreamRule {
  checkObject(input, 'rule');
  checkNames(input, FIELDS, 'a stream rule');
  const { sql, triggered = true, name = '', version = '', tags = [], temp = false } = input;
  const id = checkRuleId(input.id ?? randomUUID());
  if (typeof sql !== 'string' || sql.trim() === '') throw missing('sql', 'Missing rule SQL.', sql);
  if (typeof triggered !== 'boolean') throw invalid('triggered', 'true or false', triggered);
  if (typeof temp !== 'boolean') throw invalid('temp', 'true or false', temp);
  for (const [field, value] of Object.entries({ name, version }))
    if (typeof value !== 'string') throw invalid(field, 'a string', value);
  checkTags(tags);
  const actions = readActions(input.actions, isOfApp);
  const options = readRuleOptions(input.options, defaults);
  const shown = (input.actions ?? []).filter((action) => typeof action !== 'function');
  return {
    definition: { id, sql, actions: shown, options, triggered, name, version, tags },
    actions,
    isTemporary: temp || actions.some(({ call }) => call !== undefined)
  };
}

/**
 * Read a rule from the store. One that is no longer valid has a `fault`, along with the parts that can still be shown.
 */
export function readStoredRule(id: string, json: string, defaults: Partial<RuleOptions> | undefined): ReadStreamRule {
  let given: Partial<Record<keyof StreamRuleDefinition, unknown>> = {};
  try {
    given = JSON.parse(json);
    return readStreamRule(given as StreamRuleInput, defaults);
  } catch (cause) {
    const text = (field: 'sql' | 'name' | 'version') => (typeof given?.[field] === 'string' ? given[field] : '');
    const list = (field: 'actions' | 'tags') => (Array.isArray(given?.[field]) ? given[field] : []);
    const actions = list('actions').filter((action) => typeof action === 'object' && action !== null);
    const tags = list('tags').filter((tag) => typeof tag === 'string');
    const shown = { sql: text('sql'), name: text('name'), version: text('version'), actions, tags };
    const definition = { id, ...shown, options: readRuleOptions(undefined, defaults), triggered: true };
    return { definition, actions: [], isTemporary: false, fault: { error: asError(cause), json } };
  }
}

/** Check the tags of a rule. @throws InvalidInput STREAM_RULE_INVALID */
export function checkTags(tags: readonly string[]): readonly string[] {
  if (!Array.isArray(tags) || tags.some((tag) => typeof tag !== 'string')) throw invalid('tags', 'strings', tags);
  if (tags.length > MAX_TAGS) throw invalid('tags', `at most ${MAX_TAGS} tags`, tags.length);
  return tags;
}

/** @throws InvalidInput STREAM_RULE_INVALID */
function checkRuleId(id: unknown): string {
  if (id === undefined || id === '') throw missing('id', 'Missing rule id.', id);
  const isFit = typeof id === 'string' && !/[/\p{Cc}\p{Cs}]/u.test(id) && Buffer.byteLength(id) <= MAX_ID;
  if (!isFit) {
    const expected = `a string of at most ${MAX_ID} bytes without "/", control characters and unpaired surrogates`;
    throw invalid('id', expected, id);
  }
  if (id === '.' || id === '..')
    throw invalid('id', 'a string other than "." and "..", which cannot be part of a path', id);
  return id;
}

function readActions(given: unknown, isOfApp: boolean): PlannedAction[] {
  if (given === undefined && isOfApp) return [];
  if (given !== undefined && given !== null && !Array.isArray(given))
    throw invalid('actions', 'an array of functions and of objects with the type of a sink as their key', given);
  if (given === undefined || given === null || (given.length === 0 && !isOfApp))
    throw missing('actions', 'Missing rule actions.', given);
  if (given.length > MAX_ACTIONS) throw invalid('actions', `at most ${MAX_ACTIONS} actions`, given.length);
  return given.flatMap((action: ActionInput, index) => readAction(action, index));
}

function readAction(action: ActionInput, index: number): PlannedAction[] {
  if (typeof action === 'function') return [{ type: undefined, index, properties: {}, call: action }];
  checkObject(action, `actions[${index}]`);
  const entries = Object.entries(action);
  if (entries.length === 0) throw invalid(`actions[${index}]`, 'an object with the type of a sink as its key', action);
  return entries.map(([type, properties]) => {
    if (typeof properties !== 'object' || properties === null || Array.isArray(properties))
      throw new InvalidInput(
        'STREAM_RULE_INVALID',
        `actions[${index}].${type}`,
        'an object',
        properties,
        `expect map[string]interface{} type for the action properties, but found ${JSON.stringify(properties)}`
      );
    return { type, index, properties, call: undefined };
  });
}

function missing(field: string, sentence: string, got: unknown): InvalidInput {
  return new InvalidInput('STREAM_RULE_INVALID', field, 'a value', got, sentence);
}
