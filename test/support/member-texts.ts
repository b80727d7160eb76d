// The members of the types that the entry points export, as an editor shows them, and those for which it shows no text.
import ts from 'typescript';

/** Packages whose types are not looked into: the arguments of a machine of xstate have the shape that its compiler infers. */
const OPAQUE = /\/node_modules\/xstate\//;

/** The members of exported types. */
interface MemberTexts {
  /** The number of members. */
  readonly count: number;
  /** The members without a text, such as `lib/store/store.d.ts StoreLimits.maxKeyBytes`. */
  readonly missing: readonly string[];
}

/**
 * Count the members of all types that the declarations of entry points reach: of interfaces, classes, type literals and mapped types, and of
 * constant tables. Each member counts once, also if several types inherit it.
 * @param files the declarations of the entry points
 * @param folder of the declarations that count; those of other packages do not
 */
export function memberTexts(program: ts.Program, files: readonly string[], folder: string): MemberTexts {
  const checker = program.getTypeChecker();
  const root = `${folder.replaceAll('\\', '/')}/`;
  const seenTypes = new Set<ts.Type>();
  const seenSymbols = new Set<ts.Symbol>();
  const members = new Map<ts.Node | string, { readonly name: string; readonly hasText: boolean }>();

  const isOurs = (symbol: ts.Symbol): boolean =>
    symbol.declarations === undefined ||
    symbol.declarations.some((node) => node.getSourceFile().fileName.startsWith(root));

  const lookAtMember = (member: ts.Symbol, owner: string): void => {
    const [declaration] = member.declarations ?? [];
    if (!isOurs(member) || (declaration !== undefined && isHidden(declaration)) || member.name === 'prototype') return;
    const name = declaration === undefined ? `${owner}.${member.name}` : placeOf(declaration, root);
    const key = declaration ?? name;
    const hasText = isDescribed(member, checker);
    if (hasText || !members.has(key)) members.set(key, { name, hasText });
    look(checker.getTypeOfSymbol(member), name);
  };

  const lookAtSignature = (signature: ts.Signature, owner: string): void => {
    for (const parameter of signature.parameters) look(checker.getTypeOfSymbol(parameter), owner);
    look(signature.getReturnType(), owner);
  };

  const look = (type: ts.Type, owner: string): void => {
    if (seenTypes.has(type)) return;
    seenTypes.add(type);
    for (const argument of type.aliasTypeArguments ?? []) look(argument, owner);
    if (type.isUnionOrIntersection()) for (const part of type.types) look(part, owner);
    if ((type.flags & ts.TypeFlags.Object) === 0) return;
    const symbol = type.aliasSymbol ?? type.getSymbol();
    if (symbol?.declarations?.some((node) => OPAQUE.test(node.getSourceFile().fileName))) return;
    if (((type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference) !== 0)
      for (const argument of checker.getTypeArguments(type as ts.TypeReference)) look(argument, owner);
    if (type.getSymbol() !== undefined && !isOurs(type.getSymbol() as ts.Symbol)) return;
    if (checker.isTupleType(type)) return;
    const name = symbol === undefined || /^__/.test(symbol.name) ? owner : symbol.name;
    for (const member of type.getProperties()) lookAtMember(member, name);
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()])
      lookAtSignature(signature, name);
    for (const { type: value } of checker.getIndexInfosOfType(type)) look(value, name);
  };

  const lookAtExport = (exported: ts.Symbol): void => {
    const symbol = (exported.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(exported) : exported;
    if (seenSymbols.has(symbol) || !isOurs(symbol)) return;
    seenSymbols.add(symbol);
    if ((symbol.flags & ts.SymbolFlags.ValueModule) !== 0)
      for (const member of checker.getExportsOfModule(symbol)) lookAtExport(member);
    else {
      const [declaration] = symbol.declarations ?? [];
      const key = declaration ?? symbol.name;
      const name = declaration === undefined ? symbol.name : placeOf(declaration, root);
      members.set(key, { name, hasText: isDescribed(symbol, checker) });
    }
    if ((symbol.flags & ts.SymbolFlags.Type) !== 0) look(checker.getDeclaredTypeOfSymbol(symbol), symbol.name);
    if ((symbol.flags & ts.SymbolFlags.Value) !== 0) look(checker.getTypeOfSymbol(symbol), symbol.name);
  };

  for (const file of files) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file) as ts.SourceFile) as ts.Symbol;
    for (const exported of checker.getExportsOfModule(module)) lookAtExport(exported);
  }
  const all = [...members.values()];
  return {
    count: all.length,
    missing: all
      .filter(({ hasText }) => !hasText)
      .map(({ name }) => name)
      .sort()
  };
}

function isHidden(declaration: ts.Declaration): boolean {
  const { name } = declaration as { name?: ts.Node };
  const isPrivate = (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Private) !== 0;
  return isPrivate || (name !== undefined && ts.isPrivateIdentifier(name));
}

/** True if an editor shows a text: a comment, or a tag such as `@deprecated` with a text. */
function isDescribed(symbol: ts.Symbol, checker: ts.TypeChecker): boolean {
  return (
    symbol.getDocumentationComment(checker).length > 0 ||
    symbol.getJsDocTags(checker).some(({ text }) => text !== undefined && text.length > 0)
  );
}

/** The place of a member: its file, and the names of the declarations that contain it. */
function placeOf(declaration: ts.Declaration, root: string): string {
  const names: string[] = [];
  for (let node: ts.Node = declaration; !ts.isSourceFile(node); node = node.parent) {
    const { name } = node as { name?: ts.Node };
    if (name !== undefined) names.unshift(name.getText());
  }
  return `${declaration.getSourceFile().fileName.slice(root.length)} ${names.join('.')}`;
}
