import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
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

/** A tutorial: a page and its programs, which are a file with the name of the page, or the files of a folder with this name. */
interface Tutorial {
  readonly name: string;
  readonly page: string;
  /** The texts of the programs, by their path below the folder of the tutorials. */
  readonly programs: ReadonlyMap<string, string>;
}

/** Names of languages that page tests do not compile or run a second time, by the endings of programs. */
const LANGUAGES: Readonly<Record<string, string>> = { '.ts': 'typescript', '.js': 'javascript', '.sh': 'sh' };

/** Returns the tutorials by name. */
export function tutorials(): Tutorial[] {
  const below = join(folder, 'tutorials');
  const files = readdirSync(below, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .sort();
  const read = (file: string) => readFileSync(join(below, file), 'utf8');
  return files
    .filter((file) => file.endsWith('.md'))
    .map((page) => {
      const name = page.slice(0, -3);
      const programs = files.filter((file) => new RegExp(`^${name}(?:|/.*)\\.(?:ts|js|sh)$`).test(file));
      return { name, page: read(page), programs: new Map(programs.map((file) => [file, read(file)])) };
    });
}

/**
 * Returns the parts of the programs of tutorials, which their pages show, by the names of the marks around them: `program NAME PART`. A part is a
 * region of a program.
 */
export function programParts(): Readonly<Record<string, () => string>> {
  const parts = tutorials().flatMap(({ name, programs }) =>
    [...programs].flatMap(([file, text]) =>
      [...text.matchAll(/^ *(?:\/\/|#) #region (\S+)\n(.*?)^ *(?:\/\/|#) #endregion$/gms)].map(
        ([, part, code]) =>
          [`program ${name} ${part}`, () => `\`\`\`${LANGUAGES[extname(file)]}\n${outdented(code)}\`\`\``] as const
      )
    )
  );
  return Object.fromEntries(parts);
}

/** Lines without the indentation that all of them have. */
function outdented(code: string): string {
  const indents = [...code.matchAll(/^( *)\S/gm)].map(([, spaces]) => spaces.length);
  const least = Math.min(...indents);
  return code.replaceAll(new RegExp(`^ {${least}}`, 'gm'), '');
}

/** The examples, the tutorials and the recipes, for their page. */
export const EXAMPLE_TABLES: Readonly<Record<string, () => string>> = {
  tutorials: () =>
    [
      '| tutorial | who it is for |',
      '|---|---|',
      ...tutorials().map(({ name, page }) => {
        const [, title, who] = /^# (.*)\n\nThis tutorial is for (.*?)\.(?=\s)/s.exec(page) ?? [];
        return `| [${title}](tutorials/${name}.md) | ${who?.replaceAll('\n', ' ')} |`;
      })
    ].join('\n'),
  recipes: () =>
    readdirSync(join(folder, 'recipes'))
      .filter((file) => file.endsWith('.md'))
      .sort()
      .map((file) => {
        const [, title] = /^# (.*)\n/.exec(readFileSync(join(folder, 'recipes', file), 'utf8')) ?? [];
        return `[${title}](recipes/${file})`;
      })
      .join(' ·\n'),
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
