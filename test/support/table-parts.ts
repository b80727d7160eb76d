// The parts of generated tables.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { type Field, type FieldTable, jsonTypeOf } from '../../lib/adapter.ts';

/** Descriptions of the defaults that depend on the machine or on the registered hooks. */
const IN_WORDS: Readonly<Record<string, string>> = {
  memoryHighWatermark: '85 % of the heap limit of Node',
  allowAnonymous: '`true` without an authenticate hook or source, else `false`',
  aclNomatch: '`allow` without such a hook or source, else `deny`',
  maxTotalMqueueBytes: 'half of `memoryHighWatermark`',
  maxTotalMqueueStoreBytes: 'a third of the space available to the store',
  headers: 'none',
  reasons: '`{ maxBytes: 16_777_216 }`'
};

/** The values of options that are objects. */
const OF_OBJECTS: Readonly<Record<string, string>> = {
  url: 'URL',
  rules: 'list of `{ event, topic }`',
  headers: 'object with strings',
  ca: 'PEM',
  cert: 'PEM',
  key: 'PEM',
  out: 'list, see above',
  in: 'list, see above'
};

/** Returns a table in Markdown. */
export function markdown(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/**
 * Returns a table of options.
 * @param words descriptions of an option in place of its row: the default, and the values
 */
export function options(
  table: FieldTable,
  words: Readonly<Record<string, readonly [fallback?: string, values?: string]>> = {}
): string {
  const rows = Object.entries(table).map(([name, row]) => {
    const [fallback, values] = words[name] ?? [];
    return [
      code(name),
      fallback ?? IN_WORDS[name] ?? shown(row),
      values ?? ((row.type === 'object' && OF_OBJECTS[name]) || range(row)),
      row.about
    ];
  });
  return markdown(['option', 'default', 'values', 'purpose'], rows);
}

/**
 * Returns a table of the parameters of a resource or an action of rules.
 * @param hasDefaults false: the defaults are only examples for a form
 */
export function params(table: FieldTable, hasDefaults = true): string {
  const rows = Object.entries(table).map(([name, row]) => {
    const values =
      row.choices === undefined ? jsonTypeOf(row) : row.choices.map((value) => code(String(value))).join(', ');
    const fallback = row.default === undefined ? 'none' : code(JSON.stringify(row.default));
    const needed = row.required === true ? 'yes' : 'no';
    return [
      code(name),
      ...(hasDefaults ? [row.required === true ? 'required' : fallback] : [needed]),
      values,
      row.about
    ];
  });
  return markdown(['parameter', hasDefaults ? 'default' : 'required', 'values', 'purpose'], rows);
}

/** Returns a string as code. */
export function code(text: string): string {
  return `\`${text}\``;
}

function shown({ default: value, type, unit }: Field): string {
  if (value === undefined) return 'none';
  if (value === Infinity) return '`infinity`';
  if (type === 'size' && (value as number) > 0) return `${size(value as number)}`;
  if (Array.isArray(value)) return `\`[${value.join(', ')}]\``;
  const isNumber = typeof value === 'number';
  return isNumber ? `${value}${unit === undefined || value === 0 ? '' : ` ${unit}`}` : `\`${String(value)}\``;
}

function size(bytes: number): string {
  for (const [unit, factor] of [
    ['GB', 1024 ** 3],
    ['MB', 1024 ** 2],
    ['KB', 1024]
  ] as const) {
    if (bytes % factor === 0) return `${bytes / factor} ${unit}`;
  }
  return `${bytes} bytes`;
}

function range({ type, min = 0, max, choices, unit }: Field): string {
  if (choices !== undefined) return choices.map((choice) => `\`${choice}\``).join(', ');
  if (type === 'percent') return 'percent from 0 to 100';
  if (!['integer', 'number', 'duration', 'size'].includes(type)) return type;
  const of = unit === undefined ? '' : ` ${unit}`;
  return max === undefined || max === Infinity ? `${type} from ${min}${of}` : `${type} from ${min} to ${max}${of}`;
}

/** A member of an interface, and the text of its docstring in one line. */
interface DocumentedMember {
  readonly name: string;
  readonly about: string;
  readonly node: ts.TypeElement;
}

/** Returns the members of an interface of a file below the root. Each must have a docstring, unless `isBare`. */
export function interfaceMembers(file: string, name: string, isBare = false): DocumentedMember[] {
  const path = join(import.meta.dirname, '../..', file);
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found = source.statements.filter(ts.isInterfaceDeclaration).find((one) => one.name.text === name);
  assert.ok(found, `${file} has no interface ${name}`);
  return found.members.map((node) => {
    const [docs] = ts.getJSDocCommentsAndTags(node);
    const about = ts.getTextOfJSDocComment(docs?.comment)?.replace(/\s*\n\s*/g, ' ');
    assert.ok(
      node.name !== undefined && (isBare || about !== undefined),
      `${name}.${node.name?.getText()} has no docstring`
    );
    return { name: node.name.getText(), about: about ?? '', node };
  });
}
