// The texts of rows, as comments in the declarations of the package: an editor shows them for the members that a table describes, and for those of the
// types that are mapped from it (`BrokerOptions`). Sources keep one copy, in the row.
//
// The tables are evaluated, because rows are spread from other tables, and their defaults are computed. A constant of a declaration is a table if
// the properties of its value are rows with texts.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import ts from 'typescript';
import { writeWhole } from './generated.mjs';

const root = join(import.meta.dirname, '..');

/** Names in the sentences about causes. */
const NAMES = { clientId: 'C', publisher: 'P', topic: 'T', filter: 'F', rule: 'R' };

/** Tables whose texts are in other tables, for rows and for the fields that a row names: these tables are loaded only where texts are shown. */
const ELSEWHERE = {
  EVENTS: { in: 'lib/events/event-texts.ts', rows: 'EVENT_ABOUT', fields: 'EVENT_FIELD_ABOUT' }
};

/**
 * Add the texts to declarations.
 * @param declarations their texts, by the paths of the sources
 * @returns the same with comments
 */
export async function withTexts(declarations) {
  const tables = new Map([...declarations].map(([path, text]) => [path, tablesOf(text)]));
  const paths = [...tables.keys()].filter((path) => tables.get(path).length > 0);
  const modules = await load([...paths, ...Object.values(ELSEWHERE).map((row) => row.in)]);
  const result = new Map(declarations);
  for (const path of paths) {
    const comments = tables.get(path).flatMap((table) => commentsOf(table, modules.get(path)[table.name], modules));
    result.set(path, inserted(declarations.get(path), comments));
  }
  return result;
}

/** The exported constants whose types are type literals. */
function tablesOf(text) {
  const file = ts.createSourceFile('declaration.d.ts', text, ts.ScriptTarget.ESNext, true);
  return file.statements.filter(ts.isVariableStatement).flatMap(({ declarationList }) =>
    declarationList.declarations.flatMap(({ name, type }) => {
      const members = membersOf(type);
      return members.length === 0 ? [] : [{ name: name.text, members }];
    })
  );
}

function membersOf(type) {
  return type !== undefined && ts.isTypeLiteralNode(type) ? type.members.filter(ts.isPropertySignature) : [];
}

/** The comments for a table. @param value its value */
function commentsOf({ name, members }, value, modules) {
  const other = ELSEWHERE[name];
  const texts = other === undefined ? {} : modules.get(other.in);
  return members.flatMap((member) => {
    const key = member.name.text;
    const row = comment(member, texts[other?.rows]?.[key] ?? textOf(value?.[key]));
    const fields = (member.type?.typeArguments ?? []).flatMap(membersOf).flatMap((field) => {
      const of = texts[other?.fields] ?? {};
      return comment(field, of[`${key} ${field.name.text}`] ?? of[field.name.text]);
    });
    return [...row, ...fields];
  });
}

/** A comment for a member without one. */
function comment(member, about) {
  if (about === undefined || ts.getJSDocCommentsAndTags(member).length > 0) return [];
  const at = member.getStart();
  const { text } = member.getSourceFile();
  const indent = text.slice(text.lastIndexOf('\n', at) + 1, at);
  return [{ at, text: `/** ${about.replaceAll('*/', '*\\/')} */\n${indent}` }];
}

/** Load modules. @param paths of the sources @returns the modules by these paths */
async function load(paths) {
  const bundle = join(root, `.cache/generated/tables-${process.pid}.mjs`);
  try {
    const { outputFiles } = await build({
      absWorkingDir: root,
      stdin: {
        contents: paths.map((path, at) => `export * as m${at} from './${path}';`).join('\n'),
        resolveDir: root
      },
      bundle: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      write: false
    });
    writeWhole(bundle, outputFiles[0].text);
    const modules = await import(pathToFileURL(bundle).href);
    return new Map(paths.map((path, at) => [path, modules[`m${at}`]]));
  } finally {
    rmSync(bundle, { force: true });
  }
}

/** The text of a row, with its default and its range; undefined if the value is not a row. */
function textOf(row) {
  if (typeof row !== 'object' || row === null) return undefined;
  if (typeof row.text === 'function') return sentences(row.text(NAMES), row.remedy);
  return typeof row.about === 'string' ? sentences(row.about, ...limitsOf(row)) : undefined;
}

/** The default and the range of a field. */
function limitsOf(row) {
  const { type, min, max, unit = type === 'string' ? 'bytes' : undefined } = row;
  const amount = (value) => value.toLocaleString('en-US');
  const withUnit = (value) => (unit === undefined ? amount(value) : `${amount(value)} ${unit}`);
  // a default that is computed depends on the machine
  const isComputed = Object.getOwnPropertyDescriptor(row, 'default')?.get !== undefined;
  const standard = row.required === true || isComputed ? undefined : shown(row.default, withUnit);
  const isBounded = max !== undefined && max !== Infinity;
  const parts = [
    standard && `default ${standard}`,
    min !== undefined && (isBounded ? `from ${amount(min)} to ${withUnit(max)}` : `at least ${withUnit(min)}`),
    min === undefined && isBounded && `at most ${withUnit(max)}`
  ].filter(Boolean);
  if (parts.length === 0 && unit !== undefined && type !== 'string') return [`In ${unit}`];
  return parts.length === 0 ? [] : [capitalized(parts.join(', '))];
}

function shown(value, amount) {
  if (typeof value === 'number') return value === Infinity ? '`Infinity`' : value === 0 ? '0' : amount(value);
  if (value === undefined || value === '' || typeof value === 'function') return undefined;
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

function sentences(...parts) {
  return parts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ');
}

function capitalized(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function inserted(text, comments) {
  let result = '';
  let from = 0;
  for (const { at, text: added } of comments.toSorted((a, b) => a.at - b.at)) {
    result += text.slice(from, at) + added;
    from = at;
  }
  return result + text.slice(from);
}
