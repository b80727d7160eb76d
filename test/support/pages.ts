import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** A Markdown page that is shipped: the README, or one in a folder of `lib`, `adapters` or `examples`. */
interface Page {
  /** The path below the root, such as `lib/rules/README.md`. */
  readonly path: string;
  readonly text: string;
}

/** A code block of a page in JavaScript or TypeScript. */
interface Snippet {
  readonly page: string;
  /** The line of the page on which the code begins, counted from 1. */
  readonly line: number;
  readonly code: string;
  /** True if the tests run it. ` ```ts no-run ` marks code that is only type-checked, because it needs a server. */
  readonly runs: boolean;
}

const root = join(import.meta.dirname, '../..');

/** Returns all pages. */
export function pages(): Page[] {
  const below = ['lib', 'adapters', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((name) => join(folder, String(name)))
      .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
  );
  return ['README.md', ...below.sort()].map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** Returns the code blocks of a page in JavaScript and TypeScript. Each is a complete program. */
export function snippets({ path, text }: Page): Snippet[] {
  return [...text.matchAll(/^```(?:ts|js)( no-run)?\n(.*?)^```$/gms)].map((match) => ({
    page: path,
    line: text.slice(0, match.index).split('\n').length + 1,
    code: match[2],
    runs: match[1] === undefined
  }));
}

/** Returns the anchors of a page: those of its headings, as they are made on GitHub and npm. */
export function anchors(text: string): Set<string> {
  const prose = text.replace(/^```.*?^```$/gms, '');
  return new Set(
    [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\- _]/gu, '')
        .replaceAll(' ', '-')
    )
  );
}

/** Returns the relative links of a page: `[target path below the root, anchor]`. */
export function links({ path, text }: Page): [target: string, anchor: string | undefined][] {
  const prose = text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [file, anchor] = link.split('#');
      return [file === '' ? path : relative(root, join(root, path, '..', file)), anchor];
    });
}

/** Returns the documented output of a program: the lines of the comment after `// prints:` at its end. */
export function promised(code: string): string | undefined {
  return /^\/\/ prints:\n((?:\/\/.*\n)+)$/m.exec(code)?.[1].replace(/^\/\/ ?/gm, '');
}
