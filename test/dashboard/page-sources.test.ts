// The sources of the web page: their texts, their sizes, and their imports.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { T } from '../../adapters/dashboard/page/texts.ts';
import { PAGE, textOf } from '../support/sources.ts';

const root = join(import.meta.dirname, '../..');
const files = readdirSync(join(root, PAGE), { recursive: true, encoding: 'utf8' })
  .map((name) => posix.join(PAGE, name.replaceAll('\\', '/')))
  .filter((name) => /\.tsx?$/.test(name));

/** Attributes that a reader sees or hears. */
const SHOWN = /^(aria-label|aria-description|alt|label|placeholder|title)$/;
/** A string of several words that begins as a sentence or a label does. */
const WORDS = /^\p{Lu}\p{Ll}+ \p{Ll}+/u;
const MAX_LINES = { function: 80, file: 400 };
const MAX_FILES = 25;

function treeOf(file: string): ts.SourceFile {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  return ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true, kind);
}

/** All nodes of a file. */
function nodesOf(file: string): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(treeOf(file));
  return found;
}

/** The texts of a file that a reader sees and that are not in the table. */
function ownTexts(file: string): string[] {
  return nodesOf(file).flatMap((node) => {
    if (ts.isJsxText(node) && /\p{L}{2}/u.test(node.text)) return [`${file}: ${node.text.trim()}`];
    if (ts.isStringLiteralLike(node) && WORDS.test(node.text) && !file.endsWith('/texts.ts'))
      return [`${file}: ${node.text}`];
    if (!ts.isJsxAttribute(node) || !SHOWN.test(node.name.getText())) return [];
    const { initializer } = node;
    return initializer !== undefined && ts.isStringLiteral(initializer) && initializer.text !== ''
      ? [`${file}: ${initializer.text}`]
      : [];
  });
}

/** The paths of the texts in the table: `login.title`. */
function pathsOf(texts: object, above = ''): string[] {
  return Object.entries(texts).flatMap(([name, value]) =>
    typeof value === 'object' ? pathsOf(value, `${above}${name}.`) : [above + name]
  );
}

describe('The sources of the console', () => {
  it('keeps all texts for readers in the table of texts', () => {
    assert.ok(files.length > 10);
    assert.deepEqual(files.flatMap(ownTexts), [], 'move it to texts.ts');
  });

  it('uses every text of the table', () => {
    const all = files
      .filter((file) => !file.endsWith('/texts.ts'))
      .map(textOf)
      .join('\n');
    const isUsed = (path: string) => {
      const [area, name, ...below] = path.split('.');
      if (name === undefined) return all.includes(`T.${area}`);
      // a text that is found by a computed name has its area alone
      return below.length > 0
        ? new RegExp(`\\b${name}\\b`).test(all)
        : new RegExp(`\\.${name}\\b|T\\.${area}(\\.\\w+)*\\[|of T\\.${area}\\b`).test(all);
    };
    assert.deepEqual(
      pathsOf(T).filter((path) => !isUsed(path)),
      []
    );
  });

  it('keeps the limits of functions, files and folders', () => {
    const long = files.flatMap((file) => {
      const tree = treeOf(file);
      const lineAt = (position: number) => tree.getLineAndCharacterOfPosition(position).line;
      const linesOf = (node: ts.Node) => lineAt(node.getEnd()) - lineAt(node.getStart()) + 1;
      const functions = nodesOf(file).filter((node) => ts.isFunctionLike(node) && linesOf(node) > MAX_LINES.function);
      return [
        ...functions.map((node) => `${file}:${lineAt(node.getStart()) + 1}: ${linesOf(node)} lines`),
        ...(!file.endsWith('/texts.ts') && lineAt(tree.end) > MAX_LINES.file ? [`${file}: ${lineAt(tree.end)}`] : [])
      ];
    });
    assert.deepEqual(long, [], 'make them smaller');
    const counts = new Map<string, number>();
    for (const file of files) counts.set(posix.dirname(file), (counts.get(posix.dirname(file)) ?? 0) + 1);
    assert.deepEqual(
      [...counts].filter(([, count]) => count > MAX_FILES),
      [],
      'divide it'
    );
  });

  it('imports nothing into the model that needs a browser, and no page into parts', () => {
    const imports = files.flatMap((file) =>
      ts
        .preProcessFile(textOf(file))
        .importedFiles.map(({ fileName }) => ({ file, to: posix.join(posix.dirname(file), fileName), fileName }))
    );
    const wrong = imports.filter(({ file, to, fileName }) => {
      if (file.startsWith(`${PAGE}model/`))
        return ![`${PAGE}model/`, `${PAGE}texts.ts`, 'lib/'].some((allowed) => to.startsWith(allowed));
      if (file.startsWith(`${PAGE}app/`)) return to.startsWith(`${PAGE}parts/`) || to.startsWith(`${PAGE}pages/`);
      if (file.startsWith(`${PAGE}parts/`) && !file.endsWith('/views.tsx')) return to.startsWith(`${PAGE}pages/`);
      return fileName.startsWith('node:');
    });
    assert.deepEqual(
      wrong.map(({ file, fileName }) => `${file}: ${fileName}`),
      []
    );
  });
});
