import { useMemo } from 'preact/hooks';
import { streams } from '../../app/streams.ts';
import { type Definition, isDefinition, streamsIn, typeName } from '../../model/streams.ts';
import { type Checked, checkedOf, useChecked } from '../../parts/editor/checked.ts';
import type { Word } from '../../parts/editor/editor.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { T } from '../../texts.ts';

const S = T.streamRules;
const NOTHING: Checked = { fault: undefined, hints: [] };

interface FunctionRow {
  readonly name: string;
  readonly kind: string;
  readonly params: readonly string[];
  readonly about: string;
}

/** The names of all streams and tables. */
function useNames(): readonly (readonly [name: string, kind: 'stream' | 'table'])[] {
  const { value } = useLoaded('names of streams', async (signal) => {
    const [ofStreams, ofTables] = (await Promise.all([
      streams('GET', '/streams', { signal }),
      streams('GET', '/tables', { signal })
    ])) as [readonly string[], readonly string[]];
    return [...ofStreams.map((name) => [name, 'stream'] as const), ...ofTables.map((name) => [name, 'table'] as const)];
  });
  return value ?? [];
}

/** The streams and tables that a statement reads, as far as they exist. */
export function useDefinitions(statement: string): readonly Definition[] | undefined {
  const names = useNames();
  const wanted = streamsIn(statement).flatMap((name) => {
    const found = names.find(([known]) => known === name);
    return found === undefined ? [] : [found];
  });
  const { value } = useLoaded(
    JSON.stringify(wanted),
    async (signal) =>
      (await Promise.all(
        wanted.map(([name, kind]) => streams('GET', `/${kind}s/${encodeURIComponent(name)}`, { signal }))
      )) as readonly Definition[]
  );
  return value;
}

/** The columns, functions, streams and tables that a statement can use. */
export function useWords(definitions: readonly Definition[] | undefined): readonly Word[] {
  const names = useNames();
  const { value } = useLoaded(
    'stream functions',
    async (signal) => (await streams('GET', '/metadata/functions', { signal })) as readonly FunctionRow[]
  );
  return useMemo(() => {
    const columns = new Map<string, string>();
    for (const { Name, StreamFields } of definitions ?? [])
      for (const field of StreamFields ?? []) {
        columns.set(field.Name, typeName(field.FieldType));
        columns.set(`${Name}.${field.Name}`, typeName(field.FieldType));
      }
    return [
      ...[...columns].map(([label, about]): Word => ({ label, kind: 'column', about })),
      ...names.map(([label, about]): Word => ({ label, kind: 'stream', about })),
      ...(value ?? []).map(
        ({ name, kind, params, about }): Word => ({
          label: name,
          kind: 'function',
          about: `${name}(${params.join(', ')}), ${kind}. ${about}`
        })
      )
    ];
  }, [value, names, definitions]);
}

/** The answer to a check of a statement. */
interface Validated {
  readonly errors: Parameters<typeof checkedOf>[0];
  /** The stream or the table of CREATE STREAM and CREATE TABLE. */
  readonly defines?: { readonly kind: 'stream' | 'table'; readonly name: string };
}

/** The answer to a check of a statement, a moment after a person has stopped typing. */
function useValidated(statement: string): Validated | undefined {
  return useChecked(
    statement,
    async (sql, signal) =>
      (await streams('POST', '/x/rules/validate', { body: { sql }, signal, isBackground: true })) as Validated
  );
}

/** An error at the beginning of a statement. */
function atStart(message: string): Checked {
  return checkedOf([{ message }], []);
}

/** Errors of the statement of a rule. */
export function useValidation(statement: string): Checked {
  const answer = useValidated(statement);
  return useMemo(
    () => (answer?.defines === undefined ? checkedOf(answer?.errors ?? [], []) : atStart(S.notRule)),
    [answer]
  );
}

/** Errors and hints of CREATE STREAM or CREATE TABLE. @param present the name of the definition that is replaced; undefined: a new one */
export function useDefinitionCheck(statement: string, present: string | undefined): Checked {
  const answer = useValidated(statement);
  const names = useNames();
  return useMemo(() => {
    if (answer === undefined) return NOTHING;
    const { errors, defines } = answer;
    if (!isDefinition(statement) || (errors.length === 0 && defines === undefined)) return atStart(S.notDefinition);
    if (defines === undefined) return checkedOf(errors, []);
    const found = names.find(([name]) => name === defines.name);
    const isOther = present !== undefined && present !== defines.name;
    const hint = isOther ? S.otherName(defines.name, present) : present === undefined && found && S.nameTaken(found[1]);
    return checkedOf([], hint ? [hint] : []);
  }, [answer, names, present]);
}
