import { errorText, InvalidInput, StateError } from '../../base/errors.ts';
import { isPlain } from '../../base/secrets.ts';
import type { Ruleset, StreamConfigKind, StreamConfigUse } from '../api.ts';
import { type Catalogue, definitionOf } from '../ddl/catalogue.ts';
import type { StreamDefinition, StreamKind, StreamRuleInput } from '../types.ts';
import type { StreamConfiguration } from './configuration.ts';
import type { ImportedUsers } from './configuration-use.ts';
import type { StreamRules } from './rules.ts';
import { readRuleJson, readRuleset } from './ruleset.ts';

/** The service into which a ruleset is imported. */
interface Target {
  readonly catalogue: Catalogue;
  readonly rules: StreamRules;
  replace(sql: string): Promise<unknown>;
  /** Run a function as a change of the service. */
  change<T>(run: () => Promise<T>): Promise<T>;
  readonly config: StreamConfiguration;
  /** Open the targets of broker rules again. */
  reopenRules(ids: readonly string[]): Promise<void>;
  /** Wait for the next time slice. */
  nextSlice(): Promise<void>;
}

/** Number of imported items. */
export interface Imported {
  readonly streams: number;
  readonly tables: number;
  readonly rules: number;
  /** Sections, connections and schemas; absent if the import has none. */
  readonly config?: number;
}

/** The order of configuration: an entry follows those that it names. */
const ORDER: readonly StreamConfigKind[] = ['connection', 'confKey', 'schema'];
/** Maximum number of failures that a message names; the others are only counted. */
const MAX_NAMED = 20;

/** Processes items, each in a slice, and collects those that fail, so that an error can name each of them. */
class Failures {
  readonly #pause: () => Promise<void>;
  readonly #all: { readonly item: string; readonly error: unknown }[] = [];

  constructor(pause: () => Promise<void>) {
    this.#pause = pause;
  }

  async of(item: string, run: () => unknown): Promise<void> {
    await this.#pause();
    try {
      await run();
    } catch (error) {
      this.#all.push({ item, error });
    }
  }

  get cause(): unknown {
    return this.#all[0]?.error;
  }

  /** A line for each failed item; undefined if there are none. */
  get text(): string | undefined {
    if (this.#all.length === 0) return undefined;
    const lines = this.#all.slice(0, MAX_NAMED).map(({ item, error }) => `${item}: ${errorText(error)}`);
    const more = this.#all.length - lines.length;
    return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
  }
}

/**
 * Define the items that do not exist, and replace those that do. All items are checked before the first is changed.
 * @throws InvalidInput RULESET_INVALID if nothing was changed; StateError RULESET_INCOMPLETE if some items have failed.
 *   Both name each item
 */
export async function importRuleset(ruleset: Ruleset, target: Target): Promise<Imported> {
  const { catalogue, rules, replace, change, config, reopenRules } = target;
  const { definitions, inputs, entries, given } = await checked(ruleset, target);
  const changed = definitions.filter(({ name, sql }) => catalogue.find(name)?.sql !== sql).map(({ name }) => name);
  const imported = { streams: 0, tables: 0, rules: 0, ...(entries.length > 0 && { config: 0 }) };
  const failures = new Failures(target.nextSlice);
  const users: Pick<StreamConfigUse, 'rules' | 'brokerRules'>[] = [];
  for (const entry of entries)
    await failures.of(shown(entry.kind, entry.name), async () => {
      users.push(await change(() => config.import(entry, given)));
      imported.config = (imported.config ?? 0) + 1;
    });
  for (const { kind, name, sql } of definitions)
    await failures.of(shown(kind, name), async () => {
      await replace(sql);
      imported[`${kind}s`]++;
    });
  // before the rules, because those that are created start with the current configuration
  const affected = new Set([...users.flatMap((use) => use.rules), ...changed.flatMap((name) => rules.usersOf(name))]);
  const outdated = new Map(
    [...rules.byId.values()].filter(({ id }) => affected.has(id)).map((rule) => [rule, rule.plan])
  );
  for (const input of inputs)
    await failures.of(shown('rule', input.id), async () => {
      if ((await rules.get(input.id)) === undefined) await rules.create(input);
      else await rules.update(input.id, input);
      imported.rules++;
    });
  await failures.of('restart of rules', () => rules.restartOutdated(outdated));
  await failures.of('restart of broker rules', () => reopenRules(users.flatMap((use) => use.brokerRules)));
  const { text, cause } = failures;
  if (text === undefined) return imported;
  const { streams, tables, rules: ofRules, config: ofConfig } = imported;
  const others = ofConfig === undefined ? '' : `, and ${ofConfig} sections, connections and schemas`;
  const done = `imported ${streams} streams, ${tables} tables and ${ofRules} rules${others}, but some items failed`;
  throw new StateError('RULESET_INCOMPLETE', `${done}:\n${text}`, { cause });
}

/** Read and check all items. @throws InvalidInput RULESET_INVALID */
async function checked(ruleset: Ruleset, { catalogue, rules, config: current, nextSlice }: Target) {
  const { streams, tables, rules: texts, config: unordered = [] } = readRuleset(ruleset);
  const entries = unordered.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  const given = { entries, rules: rulesIn(texts) };
  const config = current.copy();
  const failures = new Failures(nextSlice);
  const definitions = new Map<string, StreamDefinition>();
  const inputs: (StreamRuleInput & { readonly id: string })[] = [];
  for (const entry of entries) await failures.of(shown(entry.kind, entry.name), () => config.stage(entry, given));
  for (const [kind, section] of Object.entries({ stream: streams, table: tables }) as [StreamKind, object][])
    for (const [name, sql] of Object.entries(section))
      await failures.of(shown(kind, name), () => {
        const definition = definitionOf(sql);
        if (definition.kind !== kind || definition.name !== name)
          throw new Error(`the statement defines the ${shown(definition.kind, definition.name)}`);
        if (definitions.has(name)) throw new Error('a stream of the import has the same name');
        catalogue.checkReplaceable(kind, name);
        definitions.set(name, definition);
      });
  for (const [id, json] of Object.entries(texts))
    await failures.of(shown('rule', id), async () => {
      const input = { id, ...readRuleJson(id, json) };
      if (input.id !== id) throw new Error(`Name is not consistent with rule id: it has the id ${input.id}`);
      await rules.checkImport(input, { given: definitions, config });
      inputs.push(input);
    });
  const { text, cause } = failures;
  if (text === undefined) return { definitions: [...definitions.values()], inputs, entries, given };
  const error = new InvalidInput('RULESET_INVALID', 'ruleset', 'an export', ruleset, `nothing is imported:\n${text}`);
  error.cause = cause;
  throw error;
}

/** The rules of an import, without those that are refused later because they are not JSON objects. */
function rulesIn(texts: Ruleset['rules']): ImportedUsers['rules'] {
  const read = (id: string, json: string) => {
    try {
      return readRuleJson(id, json);
    } catch {
      return undefined;
    }
  };
  const all = Object.entries(texts).map(([id, json]) => [id, read(id, json)] as const);
  return Object.fromEntries(all.filter(([, rule]) => isPlain(rule))) as ImportedUsers['rules'];
}

function shown(kind: StreamKind | StreamConfigKind | 'rule', name: string): string {
  return `${kind === 'confKey' ? 'section' : kind} "${name}"`;
}
