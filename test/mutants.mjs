// Measures how thick the tests are: `npm run mutants -- 100 --seed 1` changes one token of `lib` at a time and runs the tests. A change with which
// all tests pass survives, and is listed at the end: a test is missing, or the code at that place has no effect. `--only 11-20` runs some of the
// mutants, words select the files that are changed (`npm run mutants -- 20 --seed 1 retained`), and `--list` only prints the changes.
//
// Four stages of tests run until one fails: those that import the file or have its name, those of its folder, those of the broker as a whole, and all
// others; `--stages 3` leaves out the last. Everything happens in a copy of the repository.
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { transformSync } from 'esbuild';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
/** Test files that a change of `lib` cannot fail, except by its text. */
const ABOUT_TEXT =
  /^(architecture|architecture-page|names|words|pages|packaging|examples.*|openapi-files|statements)\.test\.ts$|^(deploy|bench)\//;
/** Folders of tests that cover most of the broker. */
const AS_A_WHOLE = /^(broker|conformance|store)\//;
/** A run of tests may take this many times as long as without a change. */
const PATIENCE = 3;
const MIN_LIMIT_MS = 60_000;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    stages: { type: 'string', default: '4' },
    list: { type: 'boolean', default: false }
  }
});
const [count, ...words] = positionals;
const only = /^(\d+)(?:-(\d+))?$/.exec(flags.only ?? `1-${count}`);
if (!/^\d+$/.test(count ?? '') || only === null) {
  process.stderr.write(
    'usage: npm run mutants -- NUMBER [WORD...] [--seed NUMBER] [--only FROM[-TO]] [--stages NUMBER] [--list]\n'
  );
  process.exit(2);
}

// ------------------------------------------------------------------------------------------------------------------ the changes

const SWAPPED = new Map(
  Object.entries({
    '<': '<=',
    '<=': '<',
    '>': '>=',
    '>=': '>',
    '===': '!==',
    '!==': '===',
    '&&': '||',
    '||': '&&',
    '-': '+',
    '*': '/',
    '/': '*',
    '%': '*',
    '+=': '-=',
    '-=': '+=',
    '<<': '>>',
    '>>': '<<',
    '>>>': '<<',
    '&': '|',
    '|': '&'
  })
);

/** Returns the changes of a file: `{ file, start, end, text, change }`, where `text` replaces the code from `start` to `end`. */
function changesOf(file) {
  const code = readFileSync(join(root, file), 'utf8');
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true);
  const found = [];
  const add = (node, text) => {
    const start = node.getStart(source);
    found.push({ file, code, start, end: node.end, text });
  };
  const negate = (condition) => add(condition, `!(${condition.getText(source)})`);
  const visit = (node) => {
    if (
      ts.isTypeNode(node) ||
      ts.isInterfaceDeclaration(node) ||
      ts.isTypeAliasDeclaration(node) ||
      ts.isImportDeclaration(node)
    )
      return;
    if (ts.isThrowStatement(node)) return; // texts of errors
    if (ts.isIfStatement(node) || ts.isWhileStatement(node)) negate(node.expression);
    else if (ts.isConditionalExpression(node)) negate(node.condition);
    else if (ts.isBinaryExpression(node)) {
      const operator = node.operatorToken.getText(source);
      const isText = [node.left, node.right].some((of) => ts.isStringLiteralLike(of) || ts.isTemplateExpression(of));
      if (operator === '??')
        add(node, `((${node.left.getText(source)}) && (${node.right.getText(source)}))`); // only parentheses allow both operators
      else if (SWAPPED.has(operator)) add(node.operatorToken, SWAPPED.get(operator));
      else if (operator === '+' && !isText) add(node.operatorToken, '-');
    } else if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
      add(node, node.operand.getText(source));
    else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
      const text = node.getText(source);
      if (text.includes('++')) add(node, text.replace('++', '--'));
      else if (text.includes('--')) add(node, text.replace('--', '++'));
    } else if (ts.isNumericLiteral(node) && !ts.isPropertyAssignment(node.parent)) add(node, `(${node.text} + 1)`);
    else if (node.kind === ts.SyntaxKind.TrueKeyword) add(node, 'false');
    else if (node.kind === ts.SyntaxKind.FalseKeyword) add(node, 'true');
    else if (ts.isExpressionStatement(node) && !/^super\b/.test(node.getText(source))) add(node, ';');
    else if (ts.isReturnStatement(node) && node.expression === undefined) add(node, ';');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Returns random numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns the chosen changes, all of them different. */
function choose() {
  const files = readdirSync(join(root, 'lib'), { recursive: true })
    .map((name) => join('lib', name))
    .filter((name) => name.endsWith('.ts') && (words.length === 0 || words.some((word) => name.includes(word))))
    .sort();
  const all = files.flatMap(changesOf);
  const random = randomFrom(Number(flags.seed));
  const chosen = [];
  while (chosen.length < Number(count) && all.length > 0)
    chosen.push(...all.splice(Math.floor(random() * all.length), 1).filter(isCode));
  return chosen.map((change, at) => ({ ...change, number: at + 1 }));
}

/** The code of a file with a change. */
function changed({ code, start, end, text }) {
  return code.slice(0, start) + text + code.slice(end);
}

/** Tell whether a file with a change can be parsed. Otherwise every test would fail, which says nothing about the tests. */
function isCode(change) {
  try {
    transformSync(changed(change), { loader: 'ts', logLevel: 'silent' });
    return true;
  } catch {
    return false;
  }
}

/** Describe a change: its file and line, the code of the line, and what it becomes. */
function shown({ file, code, start, end, text }) {
  const from = code.lastIndexOf('\n', start - 1) + 1;
  const next = code.indexOf('\n', end);
  const to = next < 0 ? code.length : next;
  const short = (lines) =>
    lines
      .trim()
      .replace(/\s+/g, ' ')
      .replace(/^(.{110}).+$/, '$1...');
  const now = text === ';' ? '(removed)' : short(code.slice(from, start) + text + code.slice(end, to));
  return `${file}:${code.slice(0, start).split('\n').length}\n     ${short(code.slice(from, to))}\n  -> ${now}`;
}

// -------------------------------------------------------------------------------------------------------------------- the tests

const tests = readdirSync(join(root, 'test'), { recursive: true })
  .filter((name) => name.endsWith('.test.ts') && !ABOUT_TEXT.test(name))
  .sort();

/** Returns the test files of each stage. */
function stagesFor(file) {
  const stem = basename(file, '.ts');
  const area = file.endsWith('/session-log.ts') || file.endsWith('/queue.ts') ? 'store' : file.split('/')[1];
  const imports = (test) => {
    const path = relative(dirname(join('test', test)), file);
    return readFileSync(join(root, 'test', test), 'utf8').includes(`'${path.startsWith('.') ? path : `./${path}`}'`);
  };
  const isOf = [
    (test) => basename(test) === `${stem}.test.ts` || imports(test),
    (test) => test.startsWith(`${area}/`),
    (test) => AS_A_WHOLE.test(test),
    () => true
  ];
  return isOf
    .map((_, stage) => tests.filter((test) => isOf.findIndex((is) => is(test)) === stage))
    .slice(0, Number(flags.stages))
    .filter((stage) => stage.length > 0);
}

/** Ends the tests that run now. */
let endTests = () => {};

/** Run test files in the copy until one fails. @returns how it ended, and after how long */
async function run(copy, files, limitMs) {
  const started = performance.now();
  const nodeFlags = ['--enable-source-maps', '--conditions=embermq-source', '--import', './test/current-test.mjs'];
  const args = [...nodeFlags, join(copy, 'test/run.mjs'), '--bail', ...files];
  const child = spawn(process.execPath, args, { cwd: copy, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output = (output + chunk).slice(-20_000);
    });
  let isLate = false;
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL'); // with the processes that it has started
    } catch {} // they have ended
  };
  endTests = end;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, limitMs);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  end();
  return { outcome: isLate ? 'timed out' : code === 0 ? 'passed' : 'failed', ms: performance.now() - started, output };
}

/** The time that a stage takes without a change. */
const usual = new Map();
async function limitFor(copy, stage) {
  const key = stage.join();
  if (!usual.has(key)) {
    const { outcome, ms, output } = await run(copy, stage, 30 * 60_000);
    if (outcome !== 'passed') throw new Error(`the tests fail without a change:\n${output}`);
    usual.set(key, ms);
  }
  return Math.max(MIN_LIMIT_MS, PATIENCE * usual.get(key));
}

async function judge(copy, change) {
  const path = join(copy, change.file);
  for (const [at, stage] of stagesFor(change.file).entries()) {
    const limitMs = await limitFor(copy, stage);
    writeFileSync(path, changed(change));
    const { outcome } = await run(copy, stage, limitMs);
    writeFileSync(path, change.code);
    if (outcome !== 'passed') return `${outcome} at stage ${at + 1}`;
  }
  return 'SURVIVED';
}

const [from, to = from] = only.slice(1, 3).map((part) => part && Number(part));
const changes = choose().filter(({ number }) => number >= from && number <= to);
if (flags.list) for (const change of changes) console.log(`${change.number}. ${shown(change)}`);
else await judgeAll();

async function judgeAll() {
  const copy = mkdtempSync(join(tmpdir(), 'embermq-mutants-'));
  const survivors = [];
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      endTests();
      rmSync(copy, { recursive: true, force: true });
      process.exit(1);
    });
  try {
    const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8'
    });
    for (const name of names.trim().split('\n'))
      if (existsSync(join(root, name))) cpSync(join(root, name), join(copy, name));
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
    for (const change of changes) {
      const started = performance.now();
      const verdict = await judge(copy, change);
      if (verdict === 'SURVIVED') survivors.push(change);
      console.log(
        `${change.number}. ${verdict} in ${((performance.now() - started) / 1000).toFixed(0)} s: ${shown(change)}`
      );
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  console.log(
    `\n${survivors.length} of ${changes.length} survived (seed ${flags.seed})${survivors.length === 0 ? '' : ':'}`
  );
  for (const change of survivors) console.log(`${change.number}. ${shown(change)}`);
}
