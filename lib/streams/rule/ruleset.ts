import { InvalidInput } from '../../base/errors.ts';
import { isPlainObject } from '../../base/fields.ts';
import type { Ruleset } from '../api.ts';
import type { StreamRuleInput } from '../types.ts';

const SECTIONS = ['streams', 'tables', 'rules', 'config'] as const;

/**
 * Validate a ruleset to be imported. Sections may be missing.
 * @throws InvalidInput RULESET_INVALID
 */
export function readRuleset(given: unknown): Ruleset {
  const isExport =
    isPlainObject(given) && (Object.keys(given).length === 0 || SECTIONS.some((name) => given[name] !== undefined));
  if (!isExport) throw invalid('ruleset', 'an object with streams, tables and rules', given);
  const { streams = {}, tables = {}, rules = {}, config = [] } = given;
  for (const [name, section] of Object.entries({ streams, tables, rules }))
    if (!isPlainObject(section)) throw invalid(`ruleset.${name}`, 'an object of strings by name', section);
  if (!Array.isArray(config) || !config.every(isPlainObject))
    throw invalid('ruleset.config', 'a list of sections, connections and schemas', config);
  return { streams, tables, rules, config } as unknown as Ruleset; // the strings are checked one by one, as statements and as JSON
}

/** Parse a rule of an import. @throws InvalidInput STREAM_RULE_INVALID */
export function readRuleJson(id: string, json: unknown): StreamRuleInput {
  try {
    return JSON.parse(String(json));
  } catch (error) {
    const text = `Parse rule ${id} error : ${(error as Error).message}.`;
    throw new InvalidInput('STREAM_RULE_INVALID', `rules.${id}`, 'JSON', json, text);
  }
}

function invalid(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('RULESET_INVALID', field, expected, got);
}
