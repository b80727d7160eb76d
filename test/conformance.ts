// Runs the tests that name a statement of the specification, joins them with the table of all statements, prints the result and writes it
// to CONFORMANCE.md. Exits with 1 if a statement that binds a server has no passing test, or if any of these tests fails.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { CHAPTERS, idsOf, STATEMENTS, type Statement } from './support/statements.ts';

interface Outcome {
  readonly file: string;
  readonly title: string;
  readonly hasPassed: boolean;
}

const here = import.meta.dirname;

/** Finds the test files that name statements: those in test/conformance, and a few next to the listener they need. */
function filesToRun(): string[] {
  return readdirSync(here, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(here, name))
    .filter((path) => /\b(it|test)\(\s*(['"`])\[MQTT/.test(readFileSync(path, 'utf8')))
    .sort();
}

async function runTests(files: string[]): Promise<{ outcomes: Outcome[]; failures: string[] }> {
  const outcomes: Outcome[] = [];
  const failures: string[] = [];
  const events = run({ files, concurrency: Math.max(2, availableParallelism()), timeout: 300_000 });
  for await (const { type, data } of events) {
    if (type === 'test:stderr') process.stderr.write(data.message);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { name, file, details } = data;
    const place = relative(here, file ?? name);
    if (details.type === 'suite') continue; // a suite passes and fails with its tests
    if (type === 'test:fail') failures.push(`${place}: ${name}\n  ${reasonOf(details.error)}`);
    if (isLeftOut(data.skip) || isLeftOut(data.todo)) continue;
    outcomes.push({ file: place, title: name, hasPassed: type === 'test:pass' });
  }
  // Files run concurrently; the tests of a file are in the order of its text.
  outcomes.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0));
  return { outcomes, failures };
}

/** Node reports `true` or a reason for a test that is skipped or marked as todo. */
function isLeftOut(mark: string | boolean | undefined): boolean {
  return mark !== undefined && mark !== false;
}

function reasonOf(error: Error | undefined): string {
  const cause = error?.cause;
  return String(cause instanceof Error ? cause.message : (cause ?? error?.message ?? '')).split('\n', 1)[0];
}

/** Groups the tests by statement. */
function byStatement(outcomes: readonly Outcome[]): Map<string, Outcome[]> {
  const tests = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    for (const id of idsOf(outcome.title)) tests.set(id, [...(tests.get(id) ?? []), outcome]);
  }
  return tests;
}

function resultOf({ side }: Statement, tests: readonly Outcome[]): 'passed' | 'FAILED' | 'NO TEST' | '-' {
  if (tests.some(({ hasPassed }) => !hasPassed)) return 'FAILED';
  if (tests.length > 0) return 'passed';
  return side === 'C' ? '-' : 'NO TEST';
}

function table(tests: ReadonlyMap<string, Outcome[]>): string[] {
  const lines: string[] = [];
  for (const { title, statements } of CHAPTERS) {
    lines.push('', `## ${title}`, '', '| id | side | meaning | tests | result |', '|---|---|---|---|---|');
    for (const statement of statements) {
      const found = tests.get(statement.id) ?? [];
      const cells = [
        statement.id,
        statement.side,
        statement.meaning,
        found.map(cell).join('<br>'),
        resultOf(statement, found)
      ];
      lines.push(`| ${cells.join(' | ')} |`);
    }
  }
  return lines;
}

/** Returns the title of a test without its ids, and its file. */
function cell({ file, title }: Outcome): string {
  const text = title
    .replace(/^(\s*\[[^\]]*\])*\s*/, '')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;');
  return `${text} (${file.replace(/\.test\.ts$/, '')})`;
}

function report(outcomes: readonly Outcome[]): { text: string; gaps: string[]; unknown: string[] } {
  const tests = byStatement(outcomes);
  const binding = [...STATEMENTS.values()].filter(({ side }) => side !== 'C');
  const gaps = binding
    .filter((statement) => resultOf(statement, tests.get(statement.id) ?? []) !== 'passed')
    .map(({ id }) => id);
  const unknown = [...tests.keys()].filter((id) => !STATEMENTS.has(id));
  const named = outcomes.filter(({ title }) => idsOf(title).length > 0).length;
  const lines = [
    '# Conformance',
    '',
    'Written by `npm run conformance`: every numbered statement of MQTT 5.0 and 3.1.1 that a server meets, the rules of MQTT 3.1 that',
    'differ, and the tests that would fail without it. Side S binds the server, B both ends, C the client alone (a test then shows how',
    'the broker answers one that breaks it).',
    '',
    `${binding.length} statements bind a server; ${binding.length - gaps.length} of them have a test that passes, in ${named} tests.`,
    '',
    gaps.length === 0 ? 'Gaps: none.' : `Gaps (${gaps.length}): ${gaps.join(', ')}.`,
    ...table(tests)
  ];
  return { text: `${lines.join('\n')}\n`, gaps, unknown };
}

const { outcomes, failures } = await runTests(filesToRun());
const { text, gaps, unknown } = report(outcomes);
writeFileSync(join(here, '..', 'CONFORMANCE.md'), text);
process.stdout.write(text);
for (const failure of failures) process.stderr.write(`failed: ${failure}\n`);
for (const id of unknown) process.stderr.write(`a test names ${id}, which test/support/statements.ts does not have\n`);
if (gaps.length > 0 || failures.length > 0 || unknown.length > 0) process.exitCode = 1;
