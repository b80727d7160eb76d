// Declarations for apps that TypeScript compiles to CommonJS: a `.d.cts` beside the declarations of each entry point.
//
// Node loads ES modules with `require`, but the compiler rejects a CommonJS file that imports the declarations of an ES module: before version 5.8
// always, and later with `module: node16`. A copy of all declarations as CommonJS would add 385 kB to the tarball, and its classes would be other
// types than those that an ES module of the same app imports. So a `.d.cts` only names what the entry point exports: types pass through
// `export type *`. No statement passes on values here, so each is a constant with the type of the original; a class is a constant and a type.
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import ts from 'typescript';

/** Lets a CommonJS file name the types of an ES module. TypeScript has it since version 5.3. */
const OF_ES_MODULE = "with { 'resolution-mode': 'import' }";

/** The name of the ES module in its `.d.cts`. */
const MODULE = 'esm';

/**
 * Write the files.
 * @param paths the declarations of the entry points, as they are published
 */
export function writeCommonJsDeclarations(paths) {
  // Only names are resolved, which takes no declarations of the language.
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ESNext, noLib: true, types: [] };
  const program = ts.createProgram({ rootNames: paths, options });
  const checker = program.getTypeChecker();
  for (const path of paths) {
    const source = program.getSourceFile(path);
    const from = `from './${basename(path, '.d.ts')}.js' ${OF_ES_MODULE};`;
    const names = checker.getExportsOfModule(checker.getSymbolAtLocation(source));
    const values = names.flatMap((name) => declarationsOf(name, checker));
    const isUsed = values.length > 0;
    const lines = [...(isUsed ? [`import type * as ${MODULE} ${from}`] : []), `export type * ${from}`, ...values];
    writeFileSync(path.replace(/\.d\.ts$/, '.d.cts'), `${lines.join('\n')}\n`);
  }
}

/** The lines that declare a value; none for a name that is only a type. */
function declarationsOf(exported, checker) {
  let symbol = exported;
  let comment = commentOf(symbol);
  while ((symbol.flags & ts.SymbolFlags.Alias) !== 0) {
    if (symbol.declarations.some((node) => ts.isTypeOnlyImportOrExportDeclaration(node))) return [];
    symbol = checker.getImmediateAliasedSymbol(symbol);
    comment ??= commentOf(symbol);
  }
  if ((symbol.flags & ts.SymbolFlags.Value) === 0) return [];
  const { name } = exported;
  const above = comment === undefined ? [] : [comment];
  const lines = [...above, `export declare const ${name}: typeof ${MODULE}.${name};`];
  if ((symbol.flags & ts.SymbolFlags.Type) === 0) return lines;
  const parameters = symbol.declarations.flatMap(({ typeParameters }) => typeParameters ?? []);
  const declared = inBrackets(parameters.map((node) => qualified(node, parameters)));
  const passed = inBrackets(parameters.map((node) => node.name.text));
  return [...lines, ...above, `export type ${name}${declared} = ${MODULE}.${name}${passed};`];
}

/** The comment of a declaration, such as that of an `export` which says what replaces a name. */
function commentOf({ declarations = [] }) {
  return declarations
    .flatMap((node) => ts.getJSDocCommentsAndTags(node))
    .find((node) => ts.isJSDoc(node))
    ?.getText();
}

function inBrackets(texts) {
  return texts.length === 0 ? '' : `<${texts.join(', ')}>`;
}

/** The text of a type parameter. The types that it names are exported by the module, as a test requires. */
function qualified(parameter, parameters) {
  const own = new Set(parameters.map((node) => node.name.text));
  const from = parameter.getStart();
  let text = parameter.getText();
  const names = [];
  const find = (node) => {
    if (ts.isTypeReferenceNode(node) && !own.has(node.typeName.getText())) names.push(node.typeName.getStart() - from);
    ts.forEachChild(node, find);
  };
  find(parameter);
  for (const at of names.reverse()) text = `${text.slice(0, at)}${MODULE}.${text.slice(at)}`;
  return text;
}
