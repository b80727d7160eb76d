// The names that the entry points of the package export, as the compiler sees them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { sourceProgram } from './compiler.ts';

const root = join(import.meta.dirname, '../..');

/** A name that an entry point exports. */
export interface PublicName {
  /** The entry point, such as `embermq/net`. */
  readonly entry: string;
  readonly name: string;
  /** The declaration behind the name. */
  readonly symbol: ts.Symbol;
  /** True if the name exists at run time. */
  readonly isValue: boolean;
  /** The text of its tag `@deprecated`. */
  readonly deprecated: string | undefined;
}

/** A member of a public class or interface. */
interface PublicMember {
  /** The class or interface. */
  readonly owner: PublicName;
  readonly name: string;
  readonly isMethod: boolean;
  readonly deprecated: string | undefined;
}

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { 'embermq-source'?: string }>;
};
const entryFiles = Object.entries(exports).flatMap(([name, { 'embermq-source': path }]) =>
  path?.endsWith('.ts') ? [{ entry: name.replace('.', 'embermq'), file: join(root, path) }] : []
);
const program = sourceProgram();
const checker = program.getTypeChecker();

function resolved(symbol: ts.Symbol, checker: ts.TypeChecker): ts.Symbol {
  return (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol;
}

function isOurs(declaration: ts.Declaration): boolean {
  return !/node_modules/.test(relative(root, declaration.getSourceFile().fileName));
}

function tagOf(node: ts.Node): string | undefined {
  const tag = ts.getJSDocTags(node).find(({ tagName }) => tagName.text === 'deprecated');
  return tag === undefined ? undefined : (ts.getTextOfJSDocComment(tag.comment) ?? '');
}

/** True if an export names a value; `export type` names only the type of a class. */
function isValue(symbol: ts.Symbol): boolean {
  let current = symbol;
  while ((current.flags & ts.SymbolFlags.Alias) !== 0) {
    if (current.declarations?.some((node) => ts.isTypeOnlyImportOrExportDeclaration(node))) return false;
    current = checker.getImmediateAliasedSymbol(current) ?? resolved(current, checker);
  }
  return (current.flags & ts.SymbolFlags.Value) !== 0;
}

/** Every export of every entry point. */
export const publicNames: readonly PublicName[] = entryFiles.flatMap(({ entry, file }) => {
  const module = checker.getSymbolAtLocation(program.getSourceFile(file) as ts.SourceFile) as ts.Symbol;
  return checker.getExportsOfModule(module).map((symbol) => ({
    entry,
    name: symbol.name,
    symbol: resolved(symbol, checker),
    isValue: isValue(symbol),
    deprecated: symbol.declarations?.map(tagOf).find((tag) => tag !== undefined)
  }));
});

function isHidden(member: ts.Node): boolean {
  const modifiers = ts.getCombinedModifierFlags(member as ts.Declaration);
  const { name } = member as { name?: ts.Node };
  return (
    ts.isConstructorDeclaration(member) ||
    (name !== undefined && ts.isPrivateIdentifier(name)) ||
    (modifiers & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0 ||
    ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  );
}

/** The members of public classes and interfaces, each once. */
export function publicMembers(): PublicMember[] {
  const seen = new Set<ts.Symbol>();
  return publicNames.flatMap((owner) => {
    if (owner.deprecated !== undefined || seen.has(owner.symbol)) return [];
    seen.add(owner.symbol);
    return (owner.symbol.declarations ?? []).filter(isOurs).flatMap((declaration) =>
      ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)
        ? [...declaration.members]
            .filter((member) => !isHidden(member) && member.name !== undefined && ts.isIdentifier(member.name))
            .map((member) => ({
              owner,
              name: (member.name as ts.Identifier).text,
              isMethod: ts.isMethodDeclaration(member) || ts.isMethodSignature(member),
              deprecated: tagOf(member)
            }))
        : []
    );
  });
}

/** Every tag `@deprecated` in the sources of the package, with the name that it is about: `name`, or `Owner.name` for a member. */
export function deprecatedTags(): { readonly file: string; readonly name: string }[] {
  return program.getSourceFiles().flatMap((source) => {
    const file = relative(root, source.fileName);
    if (!/^(lib|adapters)\b/.test(file) || !source.text.includes('@deprecated')) return [];
    const tags: { file: string; name: string }[] = [];
    const visit = (node: ts.Node): void => {
      const isTagged = (node as ts.JSDocContainer & { jsDoc?: ts.JSDoc[] }).jsDoc?.some(({ tags }) =>
        tags?.some(({ tagName }) => tagName.text === 'deprecated')
      );
      if (isTagged) {
        const { name = node, parent } = node as { name?: ts.Node; parent: { name?: ts.Node } };
        const isMember = ts.isClassElement(node) || ts.isTypeElement(node);
        tags.push({ file, name: `${isMember ? `${parent.name?.getText(source)}.` : ''}${name.getText(source)}` });
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    assert.equal(tags.length, source.text.split('@deprecated').length - 1, `${file}: a tag is about nothing`);
    return tags;
  });
}

/** True for the name in `x: Name`, `extends Name`, `typeof name` or `import('...').Name`. */
function isTypeName({ parent }: ts.Identifier): boolean {
  return (
    ts.isTypeReferenceNode(parent) ||
    ts.isExpressionWithTypeArguments(parent) ||
    ts.isQualifiedName(parent) ||
    ts.isTypeQueryNode(parent) ||
    ts.isImportTypeNode(parent)
  );
}

/**
 * The types of the package that public signatures name and no entry point exports, with a name whose signature it is. In sources, inferred types
 * are not seen; declarations have all of them.
 */
export function missingTypes(): string[] {
  return missingIn(checker, publicNames);
}

/** The same for declarations of the package. @param files the names of the entry points and the paths of their declarations */
export function missingInDeclarations(program: ts.Program, files: readonly (readonly [entry: string, path: string])[]) {
  const checker = program.getTypeChecker();
  const names = files.flatMap(([entry, path]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(path) as ts.SourceFile) as ts.Symbol;
    const symbols = checker.getExportsOfModule(module);
    return symbols.map((symbol) => ({ entry, name: symbol.name, symbol: resolved(symbol, checker) }));
  });
  return missingIn(checker, names);
}

function missingIn(checker: ts.TypeChecker, names: readonly Pick<PublicName, 'entry' | 'name' | 'symbol'>[]): string[] {
  const exported = new Set<ts.Symbol>();
  const add = (symbol: ts.Symbol): void => {
    exported.add(symbol);
    if ((symbol.flags & ts.SymbolFlags.ValueModule) !== 0)
      for (const member of checker.getExportsOfModule(symbol)) add(resolved(member, checker));
  };
  for (const { symbol } of names) add(symbol);
  const missing = new Map<string, string>();
  const look = (node: ts.Node, of: string): void => {
    if (isHidden(node) || ts.isBlock(node)) return;
    const { type, initializer } = node as { type?: ts.Node; initializer?: ts.Node };
    if (type !== undefined && initializer !== undefined) {
      look(type, of);
      return;
    }
    if (ts.isIdentifier(node) && isTypeName(node)) {
      const found = checker.getSymbolAtLocation(node);
      const symbol = found === undefined ? undefined : resolved(found, checker);
      const declaration = symbol?.declarations?.[0];
      if (symbol === undefined || declaration === undefined || !isOurs(declaration)) return;
      if ((symbol.flags & ts.SymbolFlags.TypeParameter) !== 0 || exported.has(symbol)) return;
      const place = relative(root, declaration.getSourceFile().fileName).replaceAll('\\', '/');
      missing.set(`${place}: ${symbol.name}`, of);
    }
    ts.forEachChild(node, (child) => look(child, of));
  };
  for (const symbol of exported) {
    const { entry, name } = names.find((row) => row.symbol === symbol) ?? { entry: '', name: symbol.name };
    for (const declaration of symbol.declarations ?? [])
      if (isOurs(declaration) && !ts.isSourceFile(declaration)) look(declaration, `${entry}: ${name}`);
  }
  return [...missing].map(([type, of]) => `${type} (named by ${of})`).sort();
}

/** The paths of facades from the broker, such as `broker.streams.rules`, by their type. */
export function facadePaths(): Map<ts.Symbol, string> {
  const broker = publicNames.find(({ entry, name }) => entry === 'embermq' && name === 'Broker');
  const paths = new Map<ts.Symbol, string>();
  const follow = (symbol: ts.Symbol, path: string, depth: number): void => {
    for (const member of checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))) {
      const type = checker.getTypeOfSymbol(member).getSymbol();
      if (type === undefined || paths.has(type) || !publicNames.some((row) => row.symbol === type)) continue;
      paths.set(type, `${path}.${member.name}`);
      if (depth > 1) follow(type, `${path}.${member.name}`, depth - 1);
    }
  };
  if (broker !== undefined) follow(broker.symbol, 'broker', 2);
  return paths;
}
