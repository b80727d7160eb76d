import { StateError } from '../../base/errors.ts';
import type { FieldTable } from '../../base/fields.ts';
import { isPlain, namedMember } from '../../base/secrets.ts';
import type { StreamConfigEntry, StreamConfigUse } from '../api.ts';
import type { StreamsHost } from '../host.ts';
import { sourceTypeName } from '../sources/stream-settings.ts';
import type { Properties, StreamDefinition, StreamRuleInput } from '../types.ts';
import { keyOf, SELECTOR } from './configuration-entry.ts';
import { type ReadStreamRule, sinkName } from './definition.ts';
import { sourcesOf } from './rules.ts';
import { hasHiddenSecrets, hasSecrets } from './secrets.ts';

/** The configuration, and what may use it. */
interface Users {
  /** The sections as they were given; types are in lower case. */
  readonly sections: readonly StreamConfigEntry[];
  section(type: string, name: string): Properties | undefined;
  /** The type of a connection; undefined if there is none. */
  typeOf(connection: string): string | undefined;
  readonly streams: readonly StreamDefinition[];
  readonly rules: Iterable<ReadStreamRule>;
  readonly ruleActions: ReturnType<StreamsHost['ruleActions']>;
}

type Lists = { readonly [N in keyof StreamConfigUse]: StreamConfigUse[N][number][] };

export const NO_USE: StreamConfigUse = { sections: [], streams: [], rules: [], brokerRules: [], nodes: [] };

/** The sections, streams and rules whose next start needs an entry, by its key. */
export function usesOf({
  sections,
  section,
  typeOf,
  streams,
  rules,
  ruleActions
}: Users): ReadonlyMap<string, StreamConfigUse> {
  const uses = new Map<string, Lists>();
  const add = <N extends keyof Lists>(key: string, name: N, user: Lists[N][number]) => {
    let use = uses.get(key);
    if (use === undefined) uses.set(key, (use = { sections: [], streams: [], rules: [], brokerRules: [], nodes: [] }));
    const list = use[name] as unknown[];
    if (list.at(-1) !== user) list.push(user);
  };
  /** The key of the connection of properties, in a list that is empty if there is none. */
  const connectionOf = (type: string, properties: Properties | undefined): string[] => {
    const name = properties && namedMember(properties, SELECTOR);
    const isKnown = typeof name === 'string' && typeOf(name) === type.toLowerCase();
    return isKnown ? [keyOf({ kind: 'connection', name })] : [];
  };
  const keysOfAction = (type: string, properties: Properties) => {
    const [format, schemaId] = ['format', 'schemaId'].map((name) => namedMember(properties, name));
    return [...connectionOf(type, properties), ...schemaOf(format, schemaId)];
  };
  for (const { type, name, properties } of sections)
    for (const key of connectionOf(type, properties)) add(key, 'sections', name);
  const ofStreams = new Map<string, ReadonlySet<string>>();
  for (const stream of streams) {
    const { CONF_KEY, FORMAT, SCHEMAID } = stream.options;
    const type = sourceTypeName(stream);
    const keys = new Set<string>(schemaOf(FORMAT, SCHEMAID));
    for (const name of ['default', CONF_KEY || 'default']) {
      keys.add(keyOf({ kind: 'confKey', type, name }));
      for (const key of connectionOf(type, section(type, name))) keys.add(key);
    }
    ofStreams.set(stream.name, keys);
    for (const key of keys) add(key, 'streams', stream.name);
  }
  for (const rule of rules) {
    const { id } = rule.definition;
    const addRule = (key: string, node: string) => {
      add(key, 'rules', id);
      add(key, 'nodes', { rule: id, node });
    };
    for (const { name, label } of sourcesOf(rule))
      for (const key of ofStreams.get(name) ?? []) addRule(key, `source_${label}`);
    for (const action of rule.actions)
      for (const key of keysOfAction(action.type ?? '', action.properties)) addRule(key, sinkName(action));
  }
  for (const { rule, type, properties } of ruleActions)
    for (const key of keysOfAction(type, properties)) add(key, 'brokerRules', rule);
  return uses;
}

/** The contents of an import, as they are given: they replace those that exist. */
export interface ImportedUsers {
  readonly entries: readonly StreamConfigEntry[];
  readonly rules: Readonly<Record<string, Pick<StreamRuleInput, 'actions'>>>;
}
export const NOT_IMPORTED: ImportedUsers = { entries: [], rules: {} };

/** The current users of connections. */
interface PresentUsers extends Pick<Users, 'rules' | 'ruleActions'> {
  /** The sections of the type of the connection. */
  readonly sections: readonly (readonly [name: string, properties: Properties | undefined])[];
  /** The properties of a type. */
  tableOf(type: string): FieldTable | undefined;
}

/**
 * Refuse another server for a connection over which current secrets of others are sent. An import may send its own.
 * @throws StateError STREAM_CONFIG_IN_USE
 */
export function checkUsers(
  { type, name: connection }: Pick<StreamConfigEntry, 'type' | 'name'>,
  imported: ImportedUsers,
  { sections, rules, ruleActions, tableOf }: PresentUsers
): void {
  const isOfType = (one: unknown) => `${one}`.toLowerCase() === type.toLowerCase();
  const refuse = (user: string, its: string, properties: unknown, isSecret = hasSecrets) => {
    if (!isOfType(its) || !isPlain(properties) || namedMember(properties, SELECTOR) !== connection) return;
    if (!isSecret(properties, tableOf(its))) return;
    const text = `connection ${connection} cannot name another server, which would get the secrets of ${user}`;
    throw new StateError('STREAM_CONFIG_IN_USE', `${text}: remove them there first`);
  };
  const others = imported.entries.filter((one) => one.kind === 'confKey' && isOfType(one.type));
  for (const { name, properties } of others) refuse(`section ${name}`, type, properties, hasHiddenSecrets);
  for (const [id, { actions }] of Object.entries(imported.rules))
    for (const action of Array.isArray(actions) ? actions : [])
      for (const [its, properties] of Object.entries(action ?? {}))
        refuse(`rule ${id}`, its, properties, hasHiddenSecrets);
  for (const [name, properties] of sections)
    if (!others.some((one) => one.name === name)) refuse(`section ${name}`, type, properties);
  for (const { definition, actions } of rules)
    for (const action of Object.hasOwn(imported.rules, definition.id) ? [] : actions)
      refuse(`rule ${definition.id}`, action.type ?? '', action.properties);
  for (const action of ruleActions) refuse(`broker rule ${action.rule}`, action.type, action.properties);
}

/** The key of the schema that a format uses, in a list that is empty if there is none. */
export function schemaOf(format: unknown, schemaId: unknown): string[] {
  const [, name] = /^([^.]+)\./.exec(`${schemaId ?? ''}`) ?? [];
  return name === undefined ? [] : [keyOf({ kind: 'schema', type: `${format}`, name })];
}
