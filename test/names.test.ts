// The public names: where they are exported, how many there are, and what replaces those that are deprecated.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  deprecatedTags,
  facadePaths,
  missingTypes,
  type PublicName,
  publicMembers,
  publicNames
} from './support/public-names.ts';

const root = join(import.meta.dirname, '..');

/** Most names of `embermq` at run time, without deprecated ones. */
const MAX_ROOT_NAMES = 60;

/** Verbs of facades in 0.2, which are create, get and delete now. */
const OLD_VERBS = /^(define|undefine|drop|make|add|remove|discard|describe)([A-Z]|$)/;

/** Facades that the broker does not have. */
const OTHER_FACADES = ['PluginsApi', 'ScriptsApi', 'StreamPlugins', 'StreamScripts'];

/** Members that keep such a verb: the session of a client that is away is discarded, as the specification says. */
const KEPT_VERBS = ['broker.sessions.discard'];

/** Options of config files, which keep their name. */
const KEPT_FIGURES: readonly string[] = [];

/** Public types that end in a word with several meanings. The word before it says which one is meant. */
const HOMONYMS = [
  'AccessRule',
  'AuthSource',
  'CompiledRule',
  'CompiledStreamRule',
  'ExportedRule',
  'ExportedStoppedSource',
  'OpenSource',
  'PluginSource',
  'RewriteRule',
  'StreamRule',
  'TestRow',
  'WebhookRule'
];

/** Names of 0.2 that were removed without an alias. CHANGELOG.md says what is there instead. */
const REMOVED = ['embermq/machines: ReplaySystem'];

/** Names of 0.2 that were values and are only types. CHANGELOG.md says so. */
const ONLY_TYPES = ['embermq/machines: ReplayedActor'];

interface Rename {
  readonly old: string;
  readonly new: string;
  readonly entry: string;
}

/** Reads the tag of a deprecated export: `Import it from ENTRY.`, `Use NAME.` or `Use NAME of ENTRY.`, with backticks. */
function renameOf({ entry, name, deprecated = '' }: PublicName): Rename {
  const [, moved] = /^Import it from `(embermq[/\w-]*)`\.$/.exec(deprecated) ?? [];
  if (moved !== undefined) return { old: name, new: name, entry: moved };
  const [, now, to = entry] = /^Use `(\w+)`(?: of `(embermq[/\w-]*)`)?\.$/.exec(deprecated) ?? [];
  assert.ok(now, `${entry}: ${name}: "${deprecated}" does not say what replaces it`);
  return { old: name, new: now, entry: to };
}

const deprecatedNames = publicNames.filter(({ deprecated }) => deprecated !== undefined);
const renames = deprecatedNames.map((name) => ({ ...renameOf(name), from: name.entry }));
const deprecatedMembers = publicMembers().filter(({ deprecated }) => deprecated !== undefined);

/** The table of the changelog: a row for each new name, and one for each entry point that names have moved to. */
function renameTable(): string {
  const code = (name: string) => `\`${name}\``;
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const moved: Record<string, Rename[]> = {};
  for (const rename of renames)
    if (rename.old === rename.new) (moved[`${rename.from} ${rename.entry}`] ??= []).push(rename);
  const paths = facadePaths();
  return [
    row(['old name', 'new name', 'import it from']),
    '|---|---|---|',
    ...deprecatedMembers.map(({ owner, name, deprecated = '' }) => {
      const [, now] = /^Use `([\w.]+)`/.exec(deprecated) ?? [];
      const path = paths.get(owner.symbol) ?? owner.name;
      return row([code(`${path}.${name}`), code(`${path}.${now}`), '']);
    }),
    ...renames
      .filter((rename) => rename.old !== rename.new)
      .map((rename) => row([code(rename.old), code(rename.new), code(rename.entry)])),
    ...Object.values(moved).map((names) =>
      row([names.map(({ old }) => code(old)).join(', '), 'the same', code(names[0].entry)])
    )
  ].join('\n');
}

describe('public names', () => {
  it(`embermq exports at most ${MAX_ROOT_NAMES} names at run time that are not deprecated`, () => {
    const names = publicNames
      .filter(({ entry, isValue, deprecated }) => entry === 'embermq' && isValue && deprecated === undefined)
      .map(({ name }) => name);
    assert.ok(names.includes('createBroker'));
    assert.ok(names.length <= MAX_ROOT_NAMES, `${names.length}: ${names.join(' ')}`);
  });

  it('an entry point exports every type that a public signature names', () => {
    assert.deepEqual(missingTypes(), []);
  });

  it('every entry point exports the names that it had in 0.2, except those in a list', () => {
    const lines = readFileSync(join(root, 'test/names-0.2.txt'), 'utf8').trim().split('\n');
    const former = lines.flatMap((line) => {
      const [, entry, kind, names] = /^(\S+) (values|types): (.*)$/.exec(line) ?? assert.fail(line);
      return names.split(' ').map((name) => ({ key: `${entry}: ${name}`, wasValue: kind === 'values' }));
    });
    const present = new Map<string, boolean>();
    for (const { entry, name, isValue } of publicNames) present.set(`${entry}: ${name}`, isValue);
    const keys = (rows: typeof former) => rows.map(({ key }) => key);
    assert.ok(former.length > 800);
    assert.deepEqual(keys(former.filter(({ key }) => !present.has(key))), REMOVED);
    assert.deepEqual(keys(former.filter(({ key, wasValue }) => wasValue && present.get(key) === false)), ONLY_TYPES);
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split('\n## ')[1];
    for (const name of [...REMOVED, ...ONLY_TYPES])
      assert.ok(changelog.includes(`\`${name.split(': ')[1]}\``), `CHANGELOG.md says nothing about ${name}`);
  });

  it('the tag of each deprecated export names an export that is not deprecated', () => {
    const missing = renames.filter(
      (rename) =>
        !publicNames.some(
          ({ entry, name, deprecated }) => entry === rename.entry && name === rename.new && deprecated === undefined
        )
    );
    assert.deepEqual(missing, []);
  });

  it('the tag of each deprecated member names a member that is not deprecated', () => {
    const members = publicMembers();
    const missing = deprecatedMembers.filter(({ owner, deprecated = '' }) => {
      const [, now] = /^Use `(\w+)`/.exec(deprecated) ?? [];
      return !members.some((row) => row.owner.symbol === owner.symbol && row.name === now && !row.deprecated);
    });
    assert.deepEqual(
      missing.map(({ owner, name, deprecated }) => `${owner.name}.${name}: ${deprecated}`),
      []
    );
  });

  it('facades create, get and delete: their other verbs are deprecated', () => {
    const paths = facadePaths();
    const found = publicMembers()
      .filter(({ owner }) => paths.has(owner.symbol) || OTHER_FACADES.includes(owner.name))
      .filter(({ name, isMethod, deprecated }) => isMethod && deprecated === undefined && OLD_VERBS.test(name))
      .map(({ owner, name }) => `${paths.get(owner.symbol) ?? owner.name}.${name}`);
    assert.deepEqual(found, KEPT_VERBS);
  });

  it('public types end in Row, Rule or Source only if they are in the list', () => {
    const found = publicNames
      .filter(({ name, deprecated }) => deprecated === undefined && /^[A-Z].*[a-z](Row|Rule|Source)$/.test(name))
      .map(({ name }) => name);
    assert.deepEqual([...new Set(found)].sort(), HOMONYMS);
  });

  it('uses the words counters and metrics in public names and members', () => {
    const isOld = ({ name, deprecated }: { readonly name: string; readonly deprecated: string | undefined }) =>
      deprecated === undefined && /figures?(?![a-z])/i.test(name) && !/configure/i.test(name);
    const members = publicMembers()
      .filter(isOld)
      .map(({ owner, name }) => `${owner.name}.${name}`);
    assert.deepEqual([...publicNames.filter(isOld).map(({ name }) => name), ...members], KEPT_FIGURES);
  });

  it('lib/deprecated.ts contains only re-exports, each with a tag', () => {
    const text = readFileSync(join(root, 'lib/deprecated.ts'), 'utf8');
    const code = text.replaceAll(/\/\*\*.*?\*\//gs, '').replaceAll(/export (?:type )?\{[^}]*\} from '[^']+';/g, '');
    assert.equal(code.trim(), '');
    const untagged = [...text.matchAll(/^ {2}(?!\/\*\*)(.*?),?$/gm)].filter(
      ({ index }) => !/@deprecated .*\*\/$/.test(text.slice(0, index - 1))
    );
    assert.deepEqual(
      untagged.map(([line]) => line),
      []
    );
  });

  it('files of the project import no deprecated names', () => {
    const old = new Set(renames.filter(({ from }) => from === 'embermq').map(({ old }) => old));
    const files = ['lib', 'adapters', 'examples', 'bench', 'test', '.'].flatMap((tree) =>
      readdirSync(join(root, tree), { recursive: tree !== '.', encoding: 'utf8' })
        .filter((name) => /\.(ts|mjs|md)$/.test(name) && !/node_modules|CHANGELOG/.test(name))
        .map((name) => join(tree, name))
    );
    const wrong = files.flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const lists = text.matchAll(
        /\b(?:import|export) (?:type )?\{([^}]*)\} from ['"](?:embermq|[./]+lib\/index\.ts)['"]/g
      );
      return [...lists]
        .flatMap(([, list]) => list.split(','))
        .map((item) => /^\s*(?:type )?(\w+)/.exec(item)?.[1] ?? '')
        .filter((name) => old.has(name))
        .map((name) => `${file}: ${name}`);
    });
    assert.deepEqual(wrong, []);
  });

  it('CHANGELOG.md lists every deprecated name and what replaces it (UPDATE_PAGES=1 writes the table)', () => {
    const page = join(root, 'CHANGELOG.md');
    const text = readFileSync(page, 'utf8');
    const table = `<!-- renames: begin -->\n\n${renameTable()}\n\n<!-- renames: end -->`;
    const right = text.replace(/<!-- renames: begin -->\n.*?<!-- renames: end -->/s, () => table);
    if (process.env.UPDATE_PAGES === '1') writeFileSync(page, right);
    else assert.equal(text.includes(table), true, 'UPDATE_PAGES=1 npm test -- names');
  });

  it('knows the name behind every tag @deprecated in the sources, so that the table has all of them', () => {
    const known = new Set([
      ...deprecatedNames.map(({ name }) => name),
      ...deprecatedMembers.map(({ owner, name }) => `${owner.symbol.name}.${name}`)
    ]);
    const tags = deprecatedTags();
    assert.ok(tags.length > 80, `${tags.length} tags`);
    // a tag of a part that the table does not know, such as a member of a type literal, would be missing there
    assert.deepEqual(
      tags.filter(({ name }) => !known.has(name)),
      []
    );
  });
});
