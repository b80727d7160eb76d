// Programs of the TypeScript compiler. The tests of one process share the program of all sources, and what has been parsed for it: to parse, bind
// and resolve types takes most of the time of the tests that need types.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { pages, snippets } from './pages.ts';

const root = join(import.meta.dirname, '../..');
const files = new Map<string, ts.SourceFile | undefined>();
const registry = ts.createDocumentRegistry();
let program: ts.Program | undefined;
let editors = 0;

/** The settings with which the package is built. */
const BUILD_OPTIONS: ts.CompilerOptions = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile).config,
  { ...ts.sys, readDirectory: () => [] },
  root
).options;

/**
 * Create a program. The files that several programs of this process have in common are parsed once.
 * @param texts sources that are not files, by their path
 */
export function createProgram(
  names: readonly string[],
  options: ts.CompilerOptions,
  texts: ReadonlyMap<string, string> = new Map()
): ts.Program {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, settings, ...more) => {
    const text = texts.get(name);
    if (text !== undefined) return ts.createSourceFile(name, text, settings, true);
    const { languageVersion, impliedNodeFormat } =
      typeof settings === 'object' ? settings : { languageVersion: settings, impliedNodeFormat: undefined };
    const key = `${name} ${languageVersion} ${impliedNodeFormat} ${options.moduleDetection} ${options.strict}`;
    if (!files.has(key)) files.set(key, getSourceFile(name, settings, ...more));
    return files.get(key);
  };
  return ts.createProgram({ rootNames: names, options, host });
}

/** The path under which the program of all sources has the code block of a page. */
export function pathOfSnippet(at: number): string {
  return join(root, `page-programs/${at}.ts`);
}

/** The program of all sources of the package and of the code blocks of its pages, with the settings of the build. */
export function sourceProgram(): ts.Program {
  if (program === undefined) {
    const names = ['lib', 'adapters'].flatMap((tree) =>
      readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !name.startsWith('dashboard/page/'))
        .map((name) => join(root, tree, name))
    );
    const codes = new Map(
      pages()
        .flatMap(snippets)
        .map(({ code }, at) => [pathOfSnippet(at), code])
    );
    // Programs in pages may leave the results of calls unused. `npm run check` examines the sources.
    const options = { ...BUILD_OPTIONS, noUnusedLocals: false, noUnusedParameters: false };
    program = createProgram([...names, ...codes.keys()], options, codes);
    program.getTypeChecker(); // gives the nodes their parents
  }
  return program;
}

/** The file of the program of all sources, if this process has created it. */
export function parsed(path: string): ts.SourceFile | undefined {
  return program?.getSourceFile(path);
}

/** Returns the service of an editor that has one file open, an app in a folder where the package is found with its sources. */
export function editorOf(code: string): { readonly service: ts.LanguageService; readonly path: string } {
  const path = join(root, `page-programs/editor-${++editors}.ts`);
  const host: ts.LanguageServiceHost = {
    getScriptFileNames: () => [path],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name) => {
      const text = name === path ? code : ts.sys.readFile(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getCompilationSettings: () => ({ ...BUILD_OPTIONS, noUnusedLocals: false, noUnusedParameters: false }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories
  };
  return { service: ts.createLanguageService(host, registry), path };
}
