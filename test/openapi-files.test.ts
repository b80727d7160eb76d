import assert from 'node:assert/strict';
import fs, { readFileSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { managementApi, type OpenApiDocument } from 'embermq/management';
import { streamsApi } from 'embermq/streams-api';
import { createBroker } from '../lib/index.ts';

const root = join(import.meta.dirname, '..');
const adapters = join(root, 'adapters');

/** `.ci/client-types.mjs`, which a compiled test finds only by its path below the root. */
interface ClientTypes {
  typesOf(document: OpenApiDocument, name: string): string;
}

const broker = createBroker();
const [earlier, later, hosted] = (['earlier', 'later', 'hosted'] as const).map((revision) =>
  managementApi(broker, { revision }).openapi()
);
const streams = streamsApi(broker).openapi();

const documents = [
  ['management/openapi/earlier.json', earlier],
  ['management/openapi/later.json', later],
  ['management/openapi/hosted.json', hosted],
  ['streams-api/openapi/streams.json', streams]
] as const;
const types = [
  ['management/client/earlier.ts', earlier, 'EarlierOperations'],
  ['management/client/later.ts', later, 'LaterOperations'],
  ['streams-api/client/operations.ts', streams, 'StreamsOperations']
] as const;

describe('the files that are written from the operations', () => {
  for (const [path, document] of documents)
    it(`writes the document of the operations to ${path}`, () => {
      assert.deepEqual(JSON.parse(readFileSync(join(adapters, path), 'utf8')), JSON.parse(JSON.stringify(document)));
    });

  for (const [path, document, name] of types)
    it(`writes the types of the operations to ${path}`, async () => {
      const { typesOf } = (await import(pathToFileURL(join(root, '.ci/client-types.mjs')).href)) as ClientTypes;
      assert.equal(readFileSync(join(adapters, path), 'utf8'), typesOf(document, name));
    });

  it('gives the revisions later and hosted documents that differ only in title and servers', () => {
    const { info, servers } = hosted;
    assert.notDeepEqual(servers, later.servers);
    assert.deepEqual({ ...later, info: { ...later.info, title: info.title }, servers }, hosted);
  });

  it('keeps these files out of git', () => {
    const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n');
    for (const [name] of [...documents, ...types]) {
      const path = `adapters/${name}`;
      assert.ok(ignored.includes(path) || ignored.includes(path.replace(/[^/]*$/, '')), path);
    }
  });
});

describe('writeWhole', () => {
  it('writes nothing into the folder of a file but the complete file', async (t) => {
    const { writeWhole } = (await import(pathToFileURL(join(root, '.ci/generated.mjs')).href)) as {
      writeWhole(path: string, content: string): void;
    };
    const path = join(root, `.cache/written-${process.pid}/file.ts`);
    const written = t.mock.method(fs, 'writeFileSync');
    syncBuiltinESMExports();
    try {
      writeWhole(path, 'content');
      assert.equal(readFileSync(path, 'utf8'), 'content');
      assert.deepEqual(
        written.mock.calls.map(({ arguments: [to] }) => dirname(`${to}`) === dirname(path)),
        [false]
      );
    } finally {
      t.mock.restoreAll();
      syncBuiltinESMExports();
      rmSync(dirname(path), { recursive: true, force: true });
    }
  });
});
