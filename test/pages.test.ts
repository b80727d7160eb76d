import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { pathOfSnippet, sourceProgram } from './support/compiler.ts';
import { PAGE_TABLES } from './support/page-tables.ts';
import { anchors, links, pages, promised, snippets } from './support/pages.ts';
import { runPrograms } from './support/run-programs.ts';
import type { PageRun } from './support/run-snippets.ts';

const root = join(import.meta.dirname, '..');
const all = pages();
const [readme] = all;

/** Returns the page with newly generated tables. */
function withTables(text: string): string {
  return text.replace(/<!-- ([^:>\n]+): begin -->\n.*?<!-- \1: end -->/gs, (before, name: string) => {
    const table = PAGE_TABLES[name];
    return table === undefined ? before : `<!-- ${name}: begin -->\n\n${table()}\n\n<!-- ${name}: end -->`;
  });
}

/** Returns the lines of a text that the other text does not have. This keeps the message of a failed assertion short. */
function linesOnlyIn(text: string, other: string): string[] {
  const known = new Set(other.split('\n'));
  return text.split('\n').filter((line) => !known.has(line));
}

/** Returns the faults that the compiler finds in the code blocks of all pages. */
function faults(): string[] {
  const program = sourceProgram();
  return all.flatMap(snippets).flatMap(({ page, line }, at) => {
    const source = program.getSourceFile(pathOfSnippet(at));
    assert.ok(source !== undefined);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ messageText, start = 0 }) => {
      const row = line + source.getLineAndCharacterOfPosition(start).line;
      return `${page}:${row}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
  });
}

/** Returns the deprecated names that the code blocks of all pages use, as an editor marks them. */
function deprecatedUses(): string[] {
  const program = sourceProgram();
  const checker = program.getTypeChecker() as ts.TypeChecker & {
    getSuggestionDiagnostics(file: ts.SourceFile): readonly ts.DiagnosticWithLocation[];
  };
  return all.flatMap(snippets).flatMap(({ page, line }, at) => {
    const source = program.getSourceFile(pathOfSnippet(at));
    assert.ok(source !== undefined);
    return checker
      .getSuggestionDiagnostics(source)
      .filter(({ reportsDeprecated }) => reportsDeprecated !== undefined)
      .map(({ messageText, start }) => {
        const row = line + source.getLineAndCharacterOfPosition(start).line;
        return `${page}:${row}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
      });
  });
}

describe('The pages', () => {
  it('lists every option, event and reason as its rows define (UPDATE_PAGES=1 writes the tables)', () => {
    for (const { path, text } of all) {
      const right = withTables(text);
      if (process.env.UPDATE_PAGES === '1') writeFileSync(join(root, path), right);
      else if (text !== right) {
        assert.deepEqual(linesOnlyIn(text, right), linesOnlyIn(right, text), path);
        assert.fail(`${path}: lines of a table are repeated, or in another order than its rows`);
      }
    }
  });

  it('contains every generated table', () => {
    const missing = Object.keys(PAGE_TABLES).filter(
      (name) => !all.some(({ text }) => text.includes(`<!-- ${name}: begin -->`))
    );
    assert.deepEqual(missing, []);
  });

  it('links to files and headings that exist', () => {
    const broken = all.flatMap((page) =>
      links(page)
        .filter(([target, anchor]) => {
          const file = join(root, target);
          if (!existsSync(file)) return true;
          return anchor !== undefined && target.endsWith('.md') && !anchors(readFileSync(file, 'utf8')).has(anchor);
        })
        .map(([target, anchor]) => `${page.path}: ${target}${anchor === undefined ? '' : `#${anchor}`}`)
    );
    assert.deepEqual(broken, []);
  });

  it('links to each page from another one', () => {
    const map = { path: 'ARCHITECTURE.md', text: readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8') };
    const linked = new Set(
      [...all, map].flatMap((page) =>
        links(page).flatMap(([to]) => (to === page.path ? [] : [to, join(to, 'README.md')]))
      )
    );
    const alone = all.map(({ path }) => path).filter((path) => path !== 'README.md' && !linked.has(path));
    assert.deepEqual(alone, []);
  });

  it('contains programs that type-check', () => {
    assert.deepEqual(faults(), []);
  });

  it('contains programs that use no deprecated name', () => {
    assert.deepEqual(deprecatedUses(), []);
  });

  const withPrograms = all.filter((page) => snippets(page).some(({ runs }) => runs));
  let runs: Promise<Record<string, PageRun>> | undefined;
  for (const page of withPrograms) {
    it(`runs the programs of ${page.path}, which print the documented output`, async () => {
      runs ??= runPrograms(withPrograms.flatMap(snippets).filter((snippet) => snippet.runs));
      const { outputs, error } = (await runs)[page.path];
      const programs = snippets(page).filter(({ runs }) => runs);
      assert.equal(error, undefined, `${page.path}:${programs[outputs.length - 1]?.line}: ${error}`);
      for (const [at, snippet] of programs.entries()) {
        const expected = promised(snippet.code);
        if (expected !== undefined) assert.equal(outputs[at], expected, `${page.path}:${snippet.line}`);
      }
    });
  }
});

describe('The recipes and tutorials', () => {
  it('install each package that their programs import', () => {
    const missing = all.flatMap(({ path, text }) => {
      const commands = [
        ...text.matchAll(/^npm install (?:--save-dev )?(.*)$/gm),
        ...text.matchAll(/&& npm install (?:--save-dev )?(.*)$/gm)
      ];
      const installed = commands.flatMap(([, packages]) => packages.split(/[ &]+/));
      if (!/^examples\/(?:recipes|tutorials)\//.test(path) || installed.length === 0) return [];
      const imported = [...text.matchAll(/ from '((?:@[^/']+\/)?[^./'][^/']*)/g)].map(([, name]) => name);
      const wanted = imported.filter((name) => !name.startsWith('node:') && !installed.includes(name));
      return [...new Set(wanted)].map((name) => `${path}: ${name}`);
    });
    assert.deepEqual(missing, []);
  });
});

describe('SECURITY.md', () => {
  it('names an existing test for each defence', () => {
    const text = readFileSync(join(root, 'SECURITY.md'), 'utf8');
    const [, table] = /^\| threat \| defence \| test \|\n\|[-|]+\|\n((?:\|.*\|\n)+)/m.exec(text)!;
    const unproven = table
      .trim()
      .split('\n')
      .filter((row) => {
        const [, file, title] = /\| `([^`]+)`: (.+) \|$/.exec(row) ?? [];
        const path = join(root, 'test', `${file}.test.ts`);
        if (file === undefined || !existsSync(path)) return true;
        const source = readFileSync(path, 'utf8');
        return !["'", '"', '`'].some((quote) => source.includes(`it(${quote}${title}${quote}`));
      });
    assert.deepEqual(unproven, [], 'These rows name no test, or one that does not exist.');
    const [, section] = /\n## What the broker defends against\n(.*?)\n## /s.exec(text)!;
    const lines = section.split('\n').filter((line) => line.startsWith('|'));
    assert.equal(lines.length, table.trim().split('\n').length + 2, 'A row that is not complete ends the table.');
  });
});

describe('README', () => {
  it('contains at most 10 kB', () => {
    assert.ok(Buffer.byteLength(readme.text) <= 10_000, `${Buffer.byteLength(readme.text)} bytes`);
  });

  it('contains the commands for setup, start and tests', () => {
    for (const command of ['npm ci && npm start', 'npm ci && npm test']) assert.ok(readme.text.includes(command));
  });
});

describe('Each entry point', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

  for (const [name, { 'embermq-source': source }] of Object.entries<{ 'embermq-source'?: string }>(exports)) {
    const entry = `embermq${name.slice(1)}`;
    if (source === undefined || source.endsWith('.json')) continue;

    it(`provides a page for ${entry}`, () => {
      assert.ok(
        all.some(({ path, text }) => path !== 'README.md' && text.includes(`\`${entry}\``)),
        `no README.md below lib or adapters contains \`${entry}\``
      );
    });
  }
});
