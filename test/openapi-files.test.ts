import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { managementApi, type OpenApiDocument } from 'embermq/management';
import { streamsApi } from 'embermq/streams-api';
import { REVISIONS } from '../adapters/management/revisions.ts';
import { createBroker } from '../lib/index.ts';
import { HEAD, typesOf } from './support/client-types.ts';

const adapters = join(import.meta.dirname, '../adapters');

function compare(path: string, text: string): void {
  if (process.env.UPDATE_OPENAPI !== undefined) writeFileSync(join(adapters, path), text);
  const isSame = readFileSync(join(adapters, path), 'utf8') === text;
  assert.ok(isSame, `${path} is out of date: UPDATE_OPENAPI=1 npm test -- openapi-files`);
}

/** The types of revisions by their text, without the name of the revision. */
const written = new Map<string, { readonly name: string; readonly revision: string }>();

/** The types of a revision; those of the first one with the same types, if there is one. */
function typesIn(revision: string, document: OpenApiDocument): string {
  const name = `${revision[0].toUpperCase()}${revision.slice(1)}Operations`;
  const types = typesOf(document, name);
  const key = types.replace(document.info.title, '').replace(name, '');
  const same = written.get(key);
  if (same !== undefined)
    return `${HEAD}\n\nimport type { ${same.name} } from './${same.revision}.ts';\n\nexport type ${name} = ${same.name};\n`;
  written.set(key, { name, revision });
  return types;
}

describe('The files that are written from the operations of the management interface', () => {
  for (const revision of REVISIONS) {
    const document = managementApi(createBroker(), { revision }).openapi();

    it(`writes the OpenAPI document of the revision "${revision}" unchanged`, () => {
      compare(`management/openapi/${revision}.json`, `${JSON.stringify(document, null, 1)}\n`);
    });

    it(`writes the types that the client needs for the revision "${revision}" unchanged`, () => {
      compare(`management/client/${revision}.ts`, typesIn(revision, document));
    });
  }
});

describe('The files that are written from the operations of the interface of streams', () => {
  const document = streamsApi(createBroker()).openapi();

  it('writes the OpenAPI document unchanged', () => {
    compare('streams-api/openapi/streams.json', `${JSON.stringify(document, null, 1)}\n`);
  });

  it('writes the types that the client needs unchanged', () => {
    compare('streams-api/client/operations.ts', typesOf(document, 'StreamsOperations'));
  });
});
