import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { pages } from './support/pages.ts';

const root = join(import.meta.dirname, '..');

interface SitePage {
  readonly path: string;
  readonly file: string;
  readonly text: string;
}

const load = (name: string) => import(pathToFileURL(join(root, '.ci/site', name)).href);
const { makePages, summaryOf } = (await load('pages.mjs')) as {
  makePages(): { pages: readonly SitePage[] };
  summaryOf(text: string): { title: string; summary: string };
};

describe('The site', () => {
  it('shows every page of the project (.ci/site/shelves.mjs has its place)', () => {
    const placed = new Set(makePages().pages.map(({ file }) => file));
    const files = [
      ...pages().map(({ path }) => path),
      ...readdirSync(root).filter((name) => name.endsWith('.md')),
      'bench/RESULTS.md'
    ];
    assert.deepEqual(
      files.filter((file) => !placed.has(file)),
      []
    );
  });

  it('gives each page a path, a title and a first sentence that says what it is about', () => {
    const { pages: made } = makePages();
    assert.equal(new Set(made.map(({ path }) => path)).size, made.length);
    for (const { path, text } of made) {
      const { title, summary } = summaryOf(text);
      assert.ok(title.length > 0, path);
      assert.ok(path.startsWith('look-up/') || summary.length > 10, `${path} begins with "${summary}"`);
    }
  });

  it('links from each page to pages of the site that exist', () => {
    const { pages: made } = makePages();
    const paths = new Set(made.map(({ path }) => path));
    const broken = made.flatMap(({ path, text }) => {
      const prose = text.replace(/^```.*?^```$|`[^`\n]*`/gms, '');
      const targets = [...prose.matchAll(/\]\((\.{1,2}\/[^)#]*)/g)].map(([, target]) => join(path, '..', target));
      return targets.filter((target) => !paths.has(target)).map((target) => `${path}: ${target}`);
    });
    assert.deepEqual(broken, []);
  });
});
