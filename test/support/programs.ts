import { extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** `.js` in a test run, which compiles the sources first (`test/compile.mjs`), and `.ts` with tsx. */
const EXTENSION = extname(import.meta.url);

/** The folder of the sources, as this process has imported them. Programs in it can import `embermq`. */
export const SOURCES = join(fileURLToPath(import.meta.url), '../../..');

/** The flags of Node with which another process can import those sources. */
export const SOURCE_FLAGS: readonly string[] =
  EXTENSION === '.ts' ? ['--import', import.meta.resolve('tsx'), '--conditions=embermq-source'] : [];

/** The flags and the argument with which Node runs a program that is given as text. It can import `embermq` if SOURCES is the working directory. */
export function evalFlags(program: string): string[] {
  return [...SOURCE_FLAGS, '--input-type=module', '--eval', program];
}

/** The path of a source, such as `lib/index.ts`, as a program of Node or as a module. */
export function programOf(source: string): string {
  return join(SOURCES, source.replace(/\.ts$/, EXTENSION));
}

/** The URL of a source, for an import. */
export function urlOf(source: string): string {
  return pathToFileURL(programOf(source)).href;
}

/** The folder of the joined modules: `npm test` writes them before the tests run. Programs in it can import `embermq`, and start faster. */
export const JOINED = join(import.meta.dirname, '../../.cache/test/joined');

/** The path of a program whose modules are joined: the command `embermq`, or the example of the test kit. */
export function joinedProgram(source: string): string {
  return join(JOINED, source.replace(/\.ts$/, '.js'));
}
