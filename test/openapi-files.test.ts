import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { managementApi } from 'embermq/management';
import { REVISIONS } from '../adapters/management/revisions.ts';
import { createBroker } from '../lib/index.ts';
import { typesOf } from './support/client-types.ts';

const folder = join(import.meta.dirname, '../adapters/management');

function compare(path: string, text: string): void {
  if (process.env.UPDATE_OPENAPI !== undefined) writeFileSync(join(folder, path), text);
  const isSame = readFileSync(join(folder, path), 'utf8') === text;
  assert.ok(isSame, `${path} is out of date: UPDATE_OPENAPI=1 npm test -- openapi-files`);
}

describe('The files that are written from the operations of the management interface', () => {
  for (const revision of REVISIONS) {
    const document = managementApi(createBroker(), { revision }).openapi();

    it(`have the OpenAPI document of the revision "${revision}"`, () => {
      compare(`openapi/${revision}.json`, `${JSON.stringify(document, null, 1)}\n`);
    });

    it(`have the types that the client needs for the revision "${revision}"`, () => {
      const name = `${revision[0].toUpperCase()}${revision.slice(1)}Operations`;
      compare(`client/${revision}.ts`, typesOf(document, name));
    });
  }
});
