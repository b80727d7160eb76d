import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const folder = join(import.meta.dirname, '../../examples');

/** An example that is one file. */
interface Example {
  /** The name of the file without `.ts`. */
  readonly name: string;
  /** The first sentence of the comment at its top. */
  readonly about: string;
  /** The packages that it imports besides this one. */
  readonly packages: readonly string[];
  readonly text: string;
}

/** Returns the examples that are one file, by name. */
export function examples(): Example[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.ts'))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      const comment = /^(?:\/\/ .*\n)+/.exec(text)?.[0].replace(/^\/\/ (.*)\n/gm, '$1 ') ?? '';
      const names = ts.preProcessFile(text).importedFiles.map(({ fileName }) => fileName);
      const packages = names.filter((name) => !/^(?:\.|node:|embermq\b)/.test(name));
      return { name: file.slice(0, -3), about: /^.*?\.(?= )/.exec(comment)?.[0] ?? '', packages, text };
    });
}

/** Returns the tutorials by name: each is a page and a program, in TypeScript or for the shell. */
export function tutorials(): { name: string; page: string; text: string; isShell: boolean }[] {
  const below = join(folder, 'tutorials');
  const names = readdirSync(below).filter((file) => file.endsWith('.md'));
  return names.sort().map((file) => {
    const name = file.slice(0, -3);
    const read = (ending: string) => readFileSync(join(below, name + ending), 'utf8');
    const isShell = existsSync(join(below, `${name}.sh`));
    return { name, page: read('.md'), text: read(isShell ? '.sh' : '.ts'), isShell };
  });
}

/**
 * Returns the parts of the programs of tutorials, which their pages show, by the names of the marks around them: `program NAME PART`. A part is a
 * region of the program.
 */
export function programParts(): Readonly<Record<string, () => string>> {
  const parts = tutorials().flatMap(({ name, text, isShell }) =>
    [...text.matchAll(/^(?:\/\/|#) #region (\S+)\n(.*?)^(?:\/\/|#) #endregion$/gms)].map(
      ([, part, code]) =>
        [`program ${name} ${part}`, () => `\`\`\`${isShell ? 'sh' : 'typescript'}\n${code}\`\`\``] as const
    )
  );
  return Object.fromEntries(parts);
}

/** The table of the examples, for their page. */
export const EXAMPLE_TABLES: Readonly<Record<string, () => string>> = {
  examples: () =>
    [
      '| example | what it shows | packages besides `embermq` |',
      '|---|---|---|',
      ...examples().map(
        ({ name, about, packages }) =>
          `| [\`${name}\`](${name}.ts) | ${about} | ${packages.map((used) => `\`${used}\``).join(', ')} |`
      )
    ].join('\n')
};
