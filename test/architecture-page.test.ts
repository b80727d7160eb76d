import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
const spans = [...new Set([...page.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text))];

const files = ['lib', 'adapters', 'examples', 'bench', 'test', '.ci'].flatMap((tree) =>
  readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.includes('node_modules'))
    .map((name) => posix.join(tree, name.replaceAll('\\', '/')))
);
const texts = new Map(
  files
    .filter((file) => /^(lib|adapters|test)\/.*\.(ts|mjs)$/.test(file))
    .map((file) => [file, readFileSync(join(root, file), 'utf8')])
);
const words = new Set([...texts.values()].flatMap((text) => text.match(/#?[A-Za-z_]\w*/g) ?? []));

/** Paths that are no files here: of the interface, of packages and of the system, and one that the reader completes. */
const ELSEWHERE = /^(\/x\/|\/proc\/|@types\/|embermq\/)|\/NAME\//;

/** A command of the inspector of Node. */
const OF_NODE = 'HeapProfiler.collectGarbage';

function exists(path: string): boolean {
  const wanted = posix.normalize(path).replace(/\/$/, '');
  return files.some((file) => file === wanted || file.endsWith(`/${wanted}`));
}

/** Whether a file that declares the class, interface or table has the member. */
function hasMember(holder: string, member: string): boolean {
  const declares = new RegExp(`\\b(class|interface|const) ${holder}\\b`);
  const names = new RegExp(`(^|[^\\w#])${member}\\b`);
  return [...texts.values()].some((text) => declares.test(text) && names.test(text));
}

describe('ARCHITECTURE.md', () => {
  it('names files and folders that exist', () => {
    const paths = spans.filter(
      (text) => /^[\w.@/-]+$/.test(text) && (text.includes('/') || /\.(ts|mjs|md)$/.test(text))
    );
    const bare = [...page.matchAll(/(?<![\w`/.-])([\w-]+(?:\/[\w-]+)*(?:\.machine)?\.ts)\b/g)].map(([, path]) => path);
    assert.ok(paths.length > 50 && bare.length > 20);
    const missing = [...paths, ...bare].filter((path) => !ELSEWHERE.test(path) && !exists(path));
    assert.deepEqual(missing, []);
  });

  it('names classes, functions and members that exist', () => {
    const names = spans.flatMap((text) => /^(#?[A-Za-z]\w*)(?:\.(#?\w+))?$/.exec(text)?.slice(1, 3) ?? []);
    assert.ok(names.length > 150);
    assert.deepEqual(
      names.filter((name) => name !== undefined && !words.has(name)),
      []
    );
    const members = spans.flatMap((text) => {
      const [, holder, member] = /^([A-Z]\w*)\.(#?\w+)$/.exec(text) ?? [];
      return holder === undefined ? [] : [[holder, member] as const];
    });
    const missing = members.filter(([holder, member]) => !hasMember(holder, member)).map((pair) => pair.join('.'));
    assert.deepEqual(missing, [OF_NODE]);
  });
});
