import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import ts from 'typescript';

const source = readFileSync(join(import.meta.dirname, '../../lib/base/symbols.ts'), 'utf8');
const script = `(() => { const exports = {};
${ts.transpile(source, { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 })}
exports.defineAsyncDispose(); })()`;

describe('Symbol.asyncDispose', () => {
  it('defines the symbol in a realm that lacks it, as under Jest on Node 20 and 22, and keeps an existing one', () => {
    const realm = createContext({});
    const native: unknown = runInContext('Symbol.asyncDispose', realm);
    for (let times = 0; times < 2; times++) runInContext(script, realm); // two copies of the package
    assert.equal(runInContext('Symbol.asyncDispose', realm), native ?? Symbol.for('Symbol.asyncDispose'));
  });
});
