import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ERROR_AREAS } from '../../lib/events/error-codes.ts';
import { ERROR_CODES } from '../../lib/index.ts';

const root = join(import.meta.dirname, '../..');
const texts = ['lib', 'adapters'].flatMap((tree) =>
  readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('error-codes'))
    .map((name) => readFileSync(join(root, tree, name), 'utf8'))
);

/** Codes of plain errors within the store in LevelDB, which its callers replace by `BrokerError`. */
const INNER = ['FOLDER_GONE', 'LEVEL_CORRUPTION', 'LEVEL_LOCKED'];
const WORD = '[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+';

/** Codes with which the source code creates errors. */
function made(): string[] {
  const makers = new RegExp(`(?:new [A-Z]\\w*|super|unknownName|refusal)\\(\\s*'(${WORD})'`, 'g');
  return texts.flatMap((text) => [...text.matchAll(makers)].map(([, code]) => code));
}

/** Codes that docstrings mention. */
function promised(): string[] {
  const notes = texts.flatMap((text) => text.match(/\/\*\*.*?\*\//gs) ?? []).flatMap((note) => note.split(/@(?=\w)/));
  const throws = notes.filter((tag) => tag.startsWith('throws'));
  return throws.flatMap((tag) => tag.match(new RegExp(`\\b${WORD}\\b`, 'g')) ?? []);
}

describe('The table of error codes', () => {
  it('contains every code with which an error is created, and every code that a docstring names', () => {
    const missing = [...made(), ...promised()].filter(
      (code) => ERROR_CODES[code] === undefined && !INNER.includes(code)
    );
    assert.deepEqual([...new Set(missing)].sort(), []);
  });

  it('contains no code that the source code does not mention', () => {
    const all = texts.join('\n');
    // the codes for kinds of sources and sinks are composed
    const unused = Object.keys(ERROR_CODES).filter((code) => !new RegExp(`\\b${code}\\b`).test(all));
    assert.deepEqual(unused, []);
  });

  it('lists each code in one area, in alphabetical order, with sentences', () => {
    const codes = Object.values(ERROR_AREAS).flatMap((rows) => Object.keys(rows));
    assert.equal(new Set(codes).size, codes.length);
    for (const rows of Object.values(ERROR_AREAS)) assert.deepEqual(Object.keys(rows), Object.keys(rows).sort());
    for (const [code, row] of Object.entries(ERROR_CODES))
      for (const text of [row?.about, row?.remedy]) assert.match(text ?? '', /^(?:[A-Z`]).*\.$/, code);
  });
});
