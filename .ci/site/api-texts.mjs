// A plugin of TypeDoc: a member without a comment in the sources, because a table describes it, gets the text that an editor shows for it. The text
// comes from the declarations of the package, into which the build writes the texts of the rows (`.ci/declaration-texts.mjs`).
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Comment, Converter, ReflectionKind } from 'typedoc';
import ts from 'typescript';
import { packageProgram, writeDeclarations } from '../package.mjs';

const root = join(import.meta.dirname, '../..');
const folder = join(root, '.cache/site-build/declarations');
/** Called by TypeDoc. */
export async function load({ converter, options }) {
  const entries = options.getValue('entryPoints').map((path) => relative(root, path).replaceAll('\\', '/'));
  rmSync(folder, { recursive: true, force: true });
  await writeDeclarations(folder, packageProgram(), entries);
  converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    const declared = new Declared(entries);
    for (const module of context.project.children ?? [])
      declared.describe(module, context.project.getSymbolIdFromReflection(module).packagePath);
  });
}

/** The declarations of the package. */
class Declared {
  constructor(entries) {
    const files = entries.map((path) => join(folder, path.replace(/\.ts$/, '.d.ts')));
    const options = {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ESNext,
      strict: true,
      skipLibCheck: true
    };
    this.program = ts.createProgram({ rootNames: files, options });
    this.checker = this.program.getTypeChecker();
  }

  /** Add the texts to the members of the exports of a module. @param path of its source */
  describe(module, path) {
    const { checker } = this;
    const file = this.program.getSourceFile(join(folder, path.replace(/\.ts$/, '.d.ts')));
    const exported = new Map(
      checker.getExportsOfModule(checker.getSymbolAtLocation(file)).map((symbol) => [symbol.name, symbol])
    );
    for (const reflection of module.children ?? []) {
      let symbol = exported.get(reflection.name);
      if (symbol === undefined || reflection.kind & ReflectionKind.Reference) continue;
      if (symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
      const type =
        symbol.flags & ts.SymbolFlags.Type ? checker.getDeclaredTypeOfSymbol(symbol) : checker.getTypeOfSymbol(symbol);
      this.describeMembers(reflection, type);
    }
  }

  describeMembers(reflection, type) {
    const { checker } = this;
    for (const child of childrenOf(reflection)) {
      const property = checker.getPropertyOfType(checker.getNonNullableType(type), child.name);
      if (property === undefined) continue;
      const text = ts.displayPartsToString(property.getDocumentationComment(checker));
      if (text !== '' && textOf(child) === undefined) child.comment = new Comment([{ kind: 'text', text }]);
      this.describeMembers(child, checker.getTypeOfSymbol(property));
    }
  }
}

function childrenOf({ children, type }) {
  return children ?? type?.declaration?.children ?? [];
}

/** The text of a member; that of a method or an accessor is at its signature. */
function textOf({ comment, signatures, getSignature, type }) {
  const of = [comment, ...(signatures ?? []).map((each) => each.comment), getSignature?.comment];
  const ofFunction = type?.declaration?.signatures?.map((each) => each.comment) ?? [];
  return [...of, ...ofFunction].find((each) => each?.hasVisibleComponent());
}
