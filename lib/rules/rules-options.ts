import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { RulesOptions } from './types.ts';

const LISTS = ['resources', 'actions', 'functions', 'rules'] as const;
const SWITCHES = ['ignoreSysMessage', 'nullIsNull'] as const;
const NAMES = [...LISTS, ...SWITCHES, 'events'];

/** Prefix of the documented settings of the rule engine. */
export const SETTING_PREFIX = 'rule_engine.';
const EVENT = 'events.';

/**
 * Check the option `rules` as far as possible without the rule engine; the rest is checked when the broker starts.
 * @param settings the documented settings `rule_engine.ignore_sys_message` and `rule_engine.events.<name>`, without the
 *   prefix
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function readRulesOptions(given: RulesOptions, settings: ReadonlyMap<string, unknown>): RulesOptions {
  checkObject(given, 'rules');
  checkNames(given, NAMES, 'rules');
  for (const name of LISTS)
    if (given[name] !== undefined && !Array.isArray(given[name]))
      throw new InvalidInput('OPTION_INVALID', `rules.${name}`, 'a list', given[name]);
  for (const name of SWITCHES)
    if (given[name] !== undefined && typeof given[name] !== 'boolean')
      throw new InvalidInput('OPTION_INVALID', `rules.${name}`, 'true or false', given[name]);
  for (const resource of given.resources ?? []) {
    checkObject(resource, 'rules.resources');
    if (!('make' in resource)) checkId(resource.id, 'rules.resources');
  }
  for (const rule of given.rules ?? []) {
    checkObject(rule, 'rules.rules');
    checkId(rule.id, 'rules.rules');
  }
  if (given.events !== undefined) checkObject(given.events, 'rules.events');
  return { ...given, ...documented(given, settings) };
}

function checkId(id: unknown, field: string): void {
  if (typeof id !== 'string')
    throw new InvalidInput(
      'OPTION_INVALID',
      `${field}.id`,
      'an id, so that the rule can be recognized after a restart',
      id
    );
}

function documented(given: RulesOptions, settings: ReadonlyMap<string, unknown>): RulesOptions {
  const events: Record<string, string> = { ...given.events };
  let { ignoreSysMessage } = given;
  for (const [name, value] of settings) {
    if (name === 'ignore_sys_message') ignoreSysMessage = switchOf(name, value);
    else if (name.startsWith(EVENT)) events[name.slice(EVENT.length)] = String(value);
    else throw new InvalidInput('OPTION_UNKNOWN', SETTING_PREFIX + name, 'ignore_sys_message or events.<name>', value);
  }
  return { ...(ignoreSysMessage !== undefined && { ignoreSysMessage }), events };
}

function switchOf(name: string, value: unknown): boolean {
  if (value === true || value === 'on' || value === 'true') return true;
  if (value === false || value === 'off' || value === 'false') return false;
  throw new InvalidInput('OPTION_INVALID', SETTING_PREFIX + name, 'on or off', value);
}
