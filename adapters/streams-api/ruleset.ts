// Exports and imports have the members of the documented interface, whose values are SQL or JSON. Sections, connections
// and schemas are those of its export of all data: sections and connections by their type, schemas by type and name.

import { isPlainObject } from '../../lib/adapter.ts';
import type { Ruleset, StreamConfigEntry } from '../../lib/index.ts';
import { Fault } from '../rest/index.ts';
import { check, componentOf, optional, recordOf, text } from '../rest/kit/index.ts';

/** Definitions by name, in exports and imports. */
export const RULESET = componentOf('Ruleset', 'Definitions by name', {
  streams: optional(recordOf(text(), 'The statements of streams, by name')),
  tables: optional(recordOf(text(), 'The statements of tables, by name')),
  rules: optional(recordOf(text(), 'The rules as JSON, by id')),
  sourceConfig: optional(recordOf(text(), 'Sections by name as JSON, by the type of their sources')),
  connectionConfig: optional(recordOf(text(), 'Connections by id as JSON, by their type')),
  Schema: optional(recordOf(text(), 'Schemas with type, name and content as JSON'))
});

type Texts = Readonly<Record<string, string>>;
type Given = { readonly [N in keyof typeof RULESET.properties]?: Texts };

/** A ruleset in the form of exports. */
export function shownRuleset({ streams, tables, rules, config = [] }: Ruleset): Given {
  const of = (wanted: StreamConfigEntry['kind']) => config.filter(({ kind }) => kind === wanted);
  const byType = (kind: 'confKey' | 'connection') => {
    const all = new Map<string, [name: string, properties: unknown][]>();
    for (const { type, name, properties } of of(kind)) all.set(type, [...(all.get(type) ?? []), [name, properties]]);
    return Object.fromEntries([...all].map(([type, own]) => [type, JSON.stringify(Object.fromEntries(own))]));
  };
  const schemas = of('schema').map(
    ({ type, name, properties: { content } }) => [`${type}_${name}`, JSON.stringify({ type, name, content })] as const
  );
  const more = {
    sourceConfig: byType('confKey'),
    connectionConfig: byType('connection'),
    Schema: Object.fromEntries(schemas)
  };
  return {
    ...{ streams, tables, rules },
    ...Object.fromEntries(Object.entries(more).filter(([, all]) => Object.keys(all).length > 0))
  };
}

/**
 * The ruleset in a body, or in the text of its field `content`.
 * @throws Fault
 */
export function rulesetOf(body: Readonly<Record<string, unknown>>): Ruleset {
  const { content, file } = body;
  if (file !== undefined) {
    const remedy = 'send its text in the parameter "content"';
    throw new Fault('wrongParameter', `the parameter "file" is not supported: ${remedy}`);
  }
  if (content === undefined) return filled(body);
  return filled(typeof content === 'string' ? jsonOf('content', content) : content);
}

function filled(value: unknown): Ruleset {
  const given = check<Given>(RULESET, value, 'ruleset');
  const isExport = Object.keys(RULESET.properties).some((name) => Object.hasOwn(given, name));
  if (!isExport && Object.keys(given).length > 0)
    throw new Fault('wrongParameter', 'it is not an export: it has no streams, tables or rules');
  const { streams = {}, tables = {}, rules = {}, connectionConfig, sourceConfig, Schema = {} } = given;
  // in this order, because sections name connections
  const config = [
    ...entriesOf('connection', 'connectionConfig', connectionConfig),
    ...entriesOf('confKey', 'sourceConfig', sourceConfig),
    ...Object.entries(Schema).map(([key, json]) => {
      const { type, name, content } = objectIn(`Schema.${key}`, json);
      return { kind: 'schema', type, name, properties: { content } } as StreamConfigEntry; // checked by the service
    })
  ];
  return { streams, tables, rules, ...(config.length > 0 && { config }) };
}

function entriesOf(kind: 'confKey' | 'connection', member: string, byType: Texts = {}): StreamConfigEntry[] {
  return Object.entries(byType).flatMap(([type, json]) =>
    Object.entries(objectIn(`${member}.${type}`, json)).map(
      ([name, properties]) => ({ kind, type, name, properties }) as StreamConfigEntry // checked by the service
    )
  );
}

/** @throws Fault notJson */
function objectIn(name: string, json: string): Readonly<Record<string, unknown>> {
  const value = jsonOf(name, json);
  if (isPlainObject(value)) return value;
  throw new Fault('notJson', `the parameter "${name}" is not a JSON object`);
}

/** @throws Fault notJson */
function jsonOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Fault('notJson', `the parameter "${name}" is not JSON: ${(error as Error).message}`);
  }
}
