import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');

/** The rooms of lib from the lowest to the highest. A file may import from its own row and from those above it in this list. */
const ROWS: readonly (readonly string[])[] = [
  ['errors', 'clock', 'options-table', 'work', 'timing-wheel', 'replay', 'async-dispose'],
  ['packets', 'topics', 'events', 'metrics', 'hooks', 'client-info', 'socket-meta', 'listener', 'zone', 'store'],
  ['session', 'client'],
  ['broker'],
  ['testing'],
  ['index', 'machines']
];

/** What a room may import is less than its row says. */
const NARROWER: Readonly<Record<string, readonly string[]>> = {
  packets: ['errors'],
  topics: ['errors'],
  store: ['packets', 'errors', 'clock', 'work', 'timing-wheel'],
  client: ['packets', 'topics', 'events', 'errors', 'clock', 'options-table', 'work', 'async-dispose']
};

/** Files that may re-export. */
const PUBLIC = ['lib/index.ts', 'lib/machines.ts', 'lib/testing/index.ts'];

/** lib opens no port, reads no file and speaks to no other process. */
const OUTSIDE_WORLD =
  /^(net|tls|dgram|dns|https?|http2|fs|child_process|cluster|worker_threads|readline|repl|inspector)(\/|$)/;

/** Packages lib may import; adapters and examples have their own. */
const LIB_PACKAGES = ['eventemitter3', 'lru-cache', 'mqtt-packet', 'xstate'];

const sources = ['lib', 'adapters', 'examples', 'bench', 'test'].flatMap((tree) =>
  readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => posix.join(tree, name.replaceAll('\\', '/')))
);
const texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
const imports = sources.flatMap((file) =>
  ts.preProcessFile(texts.get(file) as string, true, true).importedFiles.map(({ fileName: name }) => ({
    file,
    name,
    target: name.startsWith('.') ? posix.join(posix.dirname(file), name) : undefined
  }))
);

function treeOf(path: string): string {
  return path.split('/')[0];
}

/** `lib/packets/decode.ts` is in room `packets`, `lib/clock.ts` is a room of its own. */
function roomOf(path: string): string {
  return path.split('/')[1].replace(/\.ts$/, '');
}

function rowOf(path: string): number {
  return ROWS.findIndex((rooms) => rooms.includes(roomOf(path)));
}

function list(wrong: readonly { file: string; name: string }[]): string[] {
  return wrong.map(({ file, name }) => `${file} imports ${name}`);
}

describe('import directions', () => {
  it('reads the imports of all sources', () => {
    assert.ok(
      imports.some(({ file, target }) => file === 'test/topics/topic.test.ts' && target === 'lib/topics/topic.ts')
    );
  });

  it('lib imports nothing from adapters, examples, bench or test', () => {
    assert.deepEqual(
      list(
        imports.filter(({ file, target }) => treeOf(file) === 'lib' && target !== undefined && treeOf(target) !== 'lib')
      ),
      []
    );
  });

  it('every file of lib is in a room that has a place in the order', () => {
    assert.deepEqual(
      sources.filter((file) => treeOf(file) === 'lib' && rowOf(file) < 0),
      []
    );
  });

  it('a room of lib imports only from its own row and lower ones', () => {
    const inLib = imports.filter(({ file, target }) => treeOf(file) === 'lib' && target !== undefined);
    assert.deepEqual(list(inLib.filter(({ file, target }) => rowOf(target as string) > rowOf(file))), []);
    // session and client share a row and know nothing of each other
    assert.deepEqual(
      list(inLib.filter(({ file, target }) => roomOf(file) === 'session' && roomOf(target as string) === 'client')),
      []
    );
  });

  it('packets, topics, stores and the in-process client import no more than they need', () => {
    const wrong = imports.filter(({ file, target }) => {
      if (treeOf(file) !== 'lib' || target === undefined || roomOf(file) === roomOf(target)) return false;
      return NARROWER[roomOf(file)]?.includes(roomOf(target)) === false;
    });
    assert.deepEqual(list(wrong), []);
  });

  it('lib opens no port and reads no file', () => {
    const wrong = imports.filter(({ file, name }) => {
      const bare = name.replace(/^node:/, '');
      return treeOf(file) === 'lib' && builtinModules.includes(bare) && OUTSIDE_WORLD.test(bare);
    });
    assert.deepEqual(list(wrong), []);
  });

  it('lib imports no other packages than the ones it is made of', () => {
    const wrong = imports.filter(({ file, name, target }) => {
      return (
        treeOf(file) === 'lib' && target === undefined && !name.startsWith('node:') && !LIB_PACKAGES.includes(name)
      );
    });
    assert.deepEqual(list(wrong), []);
  });

  it('adapters reach lib through lib/index.ts and each other through their index.ts', () => {
    const wrong = imports.filter(({ file, target }) => {
      if (treeOf(file) !== 'adapters' || target === undefined || target === 'lib/index.ts') return false;
      const isOwn = treeOf(target) === 'adapters' && roomOf(target) === roomOf(file);
      return !isOwn && target !== `adapters/${roomOf(target)}/index.ts`;
    });
    assert.deepEqual(list(wrong), []);
  });

  it('examples import the package by name, and nothing from outside their folder by path', () => {
    const wrong = imports.filter(
      ({ file, target }) => treeOf(file) === 'examples' && target !== undefined && treeOf(target) !== 'examples'
    );
    assert.deepEqual(list(wrong), []);
  });

  it('only the entry points re-export', () => {
    const wrong = sources.filter((file) => /^export\s[^;'"(=]*\sfrom\s/m.test(texts.get(file) as string));
    assert.deepEqual(
      wrong.filter((file) => !PUBLIC.includes(file) && !/^adapters\/[^/]+\/index\.ts$/.test(file)),
      []
    );
  });

  it('nothing is exported as default', () => {
    assert.deepEqual(
      sources.filter((file) => /^export default\b/m.test(texts.get(file) as string)),
      []
    );
  });
});
