import { CHANGES, type DefinitionChange, type DefinitionKinds } from './changes.ts';
import { type OwnTable, StoredDefinitions } from './stored-definitions.ts';

/** Maximum number of names of definitions in the text for each change. */
const MAX_NAMES = 5;
/** Maximum length of a name in the text; the rest is left out. */
const MAX_NAME_LENGTH = 64;

/** The stored definitions that behave differently in this version. */
export interface UpgradeReport {
  /** Number of definitions. */
  readonly count: number;
  /** The changes, each with the definitions that it affects. */
  readonly text: string;
}

/**
 * Find the definitions of a store that behave differently than in the release that wrote it.
 * @param version of the definitions in the store, see `DEFINITIONS_VERSION`
 * @param changes for tests
 * @returns undefined if there are none
 */
export function upgradeReport(own: OwnTable, version: number, changes = CHANGES): UpgradeReport | undefined {
  const stored = new StoredDefinitions(own);
  const all = new Set<string>();
  const texts: string[] = [];
  for (const kind of Object.keys(changes) as (keyof DefinitionKinds)[]) {
    const rows = (changes[kind] as readonly DefinitionChange<never>[]).filter(({ since }) => since > version);
    if (rows.length === 0) continue;
    const definitions = stored.of(kind);
    for (const row of rows) {
      const names = definitions.filter(([, definition]) => isAffected(row, definition, stored)).map(([name]) => name);
      if (names.length === 0) continue;
      for (const name of names) all.add(`${kind} ${name}`);
      texts.push(`${row.text} (${kind} ${listed(names)})`);
    }
  }
  return all.size === 0 ? undefined : { count: all.size, text: texts.join('; ') };
}

/** Tell whether a definition is affected. One that the row cannot read is not counted: it does not run, and its status has the reason. */
function isAffected<D>(row: DefinitionChange<D>, definition: unknown, stored: StoredDefinitions): boolean {
  try {
    return row.isAffected(definition as D, stored);
  } catch {
    return false;
  }
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => name.slice(0, MAX_NAME_LENGTH));
  const rest = names.length - shown.length;
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
