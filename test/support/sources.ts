// The sources of the project as text and as syntax trees. The tests of one process read and parse each file once.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { parsed } from './compiler.ts';

const root = join(import.meta.dirname, '../..');

/** The folder of the web page, which runs in browsers: a separate program, with packages that are bundled. */
export const PAGE = 'adapters/dashboard/page/';

/** The paths of all TypeScript sources below the root, such as `lib/index.ts`, without those of the web page. */
export const sources: readonly string[] = ['lib', 'adapters', 'examples', 'bench', 'test'].flatMap((tree) =>
  readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => posix.join(tree, name.replaceAll('\\', '/')))
    .filter((name) => !name.startsWith(PAGE))
);

const texts = new Map<string, string>();
const trees = new Map<string, ts.SourceFile>();

/** `lib`, `adapters`, `examples`, `bench` or `test`. */
export function treeOf(path: string): string {
  return path.split('/')[0];
}

/** The sources of the package. */
export const packageSources = sources.filter((path) => ['lib', 'adapters'].includes(treeOf(path)));

/** The text of a file below the root. */
export function textOf(path: string): string {
  let text = texts.get(path);
  if (text === undefined) texts.set(path, (text = readFileSync(join(root, path), 'utf8')));
  return text;
}

/** The syntax tree of a source. Its nodes need not have parents. */
export function syntaxOf(path: string): ts.SourceFile {
  let tree = trees.get(path);
  if (tree === undefined) {
    tree = parsed(join(root, path)) ?? ts.createSourceFile(path, textOf(path), ts.ScriptTarget.Latest);
    trees.set(path, tree);
  }
  return tree;
}

/** An import of a source: `import`, `export ... from`, `import()`, also as a type. */
interface Import {
  readonly file: string;
  /** The name as it is written, such as `./turn.ts` or `node:fs`. */
  readonly name: string;
  /** The path of an imported source. */
  readonly target: string | undefined;
  /** The names that are imported from it; `*`: all that it exports. */
  readonly names: readonly string[];
}

const imports = new Map<string, readonly Import[]>();

/** The imports of a source. */
export function importsOf(file: string): readonly Import[] {
  const known = imports.get(file);
  if (known !== undefined) return known;
  const found: Import[] = [];
  const take = (from: ts.Node | undefined, names: readonly string[]) => {
    if (from === undefined || !ts.isStringLiteralLike(from)) return;
    const target = from.text.startsWith('.') ? posix.join(posix.dirname(file), from.text) : undefined;
    found.push({ file, name: from.text, target, names });
  };
  const namesIn = (list: ts.NamedImportBindings | ts.NamedExportBindings | undefined) =>
    list !== undefined && 'elements' in list
      ? list.elements.map(({ name, propertyName }) => (propertyName ?? name).text)
      : ['*'];
  const visit = (node: ts.Node): void => {
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) take(node.argument.literal, ['*']);
    else if (ts.isCallExpression(node) && (node.expression.kind === ts.SyntaxKind.ImportKeyword || isRequire(node)))
      take(node.arguments[0], ['*']);
    ts.forEachChild(node, visit);
  };
  const tree = syntaxOf(file);
  for (const statement of tree.statements) {
    if (ts.isImportDeclaration(statement))
      take(statement.moduleSpecifier, namesIn(statement.importClause?.namedBindings));
    else if (ts.isExportDeclaration(statement)) take(statement.moduleSpecifier, namesIn(statement.exportClause));
  }
  if (/\b(import|require)\(/.test(tree.text)) visit(tree);
  imports.set(file, found);
  return found;
}

function isRequire({ expression }: ts.CallExpression): boolean {
  return ts.isIdentifier(expression) && expression.text === 'require';
}
