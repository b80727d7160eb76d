import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');
const files = new Map<string, ts.SourceFile | undefined>();
let program: ts.Program | undefined;

/** The settings of the compiler in tsconfig.json. */
export const COMPILER_OPTIONS: ts.CompilerOptions = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config,
  { ...ts.sys, readDirectory: () => [] },
  root
).options;

/** Create a program. The files that several programs of this process have in common are parsed once. */
export function createProgram(names: readonly string[], options: ts.CompilerOptions): ts.Program {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, settings, ...more) => {
    const { languageVersion, impliedNodeFormat } =
      typeof settings === 'object' ? settings : { languageVersion: settings, impliedNodeFormat: undefined };
    const key = `${name} ${languageVersion} ${impliedNodeFormat} ${options.moduleDetection} ${options.strict}`;
    if (!files.has(key)) files.set(key, getSourceFile(name, settings, ...more));
    return files.get(key);
  };
  return ts.createProgram({ rootNames: names, options, host });
}

/** The program of all sources of the package. */
export function sourceProgram(): ts.Program {
  program ??= createProgram(
    ['lib', 'adapters'].flatMap((tree) =>
      readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => join(root, tree, name))
    ),
    COMPILER_OPTIONS
  );
  return program;
}
