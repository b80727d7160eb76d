import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

/** Imports that load a module: not those of types, and not those in a function. */
const IMPORT = /^(?:import|export)\s(?!type\b)(?:[^;'"]*?\sfrom\s)?'([^']+)';/gm;

/** The files that a file loads, and the packages, each with the file that imports it. */
function loadedBy(first: string): Map<string, string> {
  const loaded = new Map([[join(ROOT, first), '']]);
  for (const file of loaded.keys()) {
    if (!file.startsWith('/')) continue;
    for (const [, name] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const target = name.startsWith('.') ? join(dirname(file), name) : name;
      if (!loaded.has(target)) loaded.set(target, relative(ROOT, file));
    }
  }
  return loaded;
}

describe('embermq serve', () => {
  it('loads the interfaces over HTTP and their package for schemas only on demand, because they take 15 MB of memory', () => {
    const loaded = loadedBy('adapters/cli/serve/serve.ts');
    assert.ok(loaded.size > 100, 'it loads the broker');
    const found = [...loaded].filter(
      ([name]) => /^typebox/.test(name) || /adapters\/(management|streams-api)\/(index|api)\.ts$/.test(name)
    );
    assert.deepEqual(found, []);
    assert.ok([...loadedBy('adapters/cli/serve/http.ts').keys()].some((name) => /^typebox/.test(name)));
  });
});
