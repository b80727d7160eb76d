import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');

/** The page is read in ten minutes. */
const MAX_WORDS = 1600;

const paths = ['lib', 'adapters', 'examples', 'bench', 'test'].flatMap((tree) => [
  tree,
  ...readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.includes('node_modules'))
    .map((name) => posix.join(tree, name.replaceAll('\\', '/')))
]);

describe('ARCHITECTURE.md', () => {
  it('contains at most 1,600 words', () => {
    const count = page.split(/\s+/).filter((word) => word !== '').length;
    assert.ok(count <= MAX_WORDS, `it has ${count}`);
  });

  it('names folders and files that exist', () => {
    const spans = [...page.matchAll(/`([\w-]+(?:\/[\w.-]+)+|lib|adapters|examples|bench|test)`/g)].map(
      ([, path]) => path
    );
    assert.ok(spans.length > 20);
    assert.deepEqual(
      spans.filter((path) => !paths.includes(path)),
      []
    );
  });

  it('contains a row for each folder of lib and adapters', () => {
    const folders = ['lib', 'adapters'].flatMap((tree) =>
      readdirSync(join(root, tree), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${tree}/${name}`)
    );
    const missing = folders.filter((folder) => !page.includes(`\`${folder}\``));
    assert.deepEqual(missing, []);
  });
});
