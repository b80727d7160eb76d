import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { managementApi } from 'embermq/management';
import { streamsApi } from 'embermq/streams-api';

type Json = Readonly<Record<string, unknown>>;

/** A document, as far as it is read here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Json };
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Json[];
  readonly requestBody?: Json;
  readonly responses: Readonly<Record<string, Json>>;
}

const FILE = join(import.meta.dirname, 'contract.txt');
const HEAD =
  '# document operation method path statuses digests: parameters, body, answer (UPDATE_PAGES=1 npm test -- rest/contract)';

const broker = createBroker();
const DOCUMENTS = {
  earlier: managementApi(broker, { revision: 'earlier' }).openapi(),
  later: managementApi(broker, { revision: 'later' }).openapi(),
  original: managementApi(broker, { revision: 'later', errors: 'original' }).openapi(),
  streams: streamsApi(broker).openapi()
};

/** A line for each operation of a document. */
function linesOf(name: string, document: Document): string[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { operationId, parameters, requestBody, responses }]) => {
      const statuses = Object.keys(responses);
      const success = statuses.find((status) => status.startsWith('2')) as string;
      const digests = [parameters, requestBody, responses[success]].map((part) => digestOf(part, document));
      return [name, operationId, method.toUpperCase(), path, statuses.join(), ...digests].join(' ');
    })
  );
}

function digestOf(part: unknown, document: Document): string {
  if (part === undefined) return '-';
  return createHash('sha256')
    .update(JSON.stringify(contentOf(part, document)))
    .digest('hex')
    .slice(0, 8);
}

/** A part of a document without texts for people, with components in the place of references, and with keys in order. */
function contentOf(part: unknown, document: Document, refs: readonly string[] = []): unknown {
  if (Array.isArray(part)) return part.map((one) => contentOf(one, document, refs));
  if (typeof part !== 'object' || part === null) return part;
  const { $ref, properties, ...others } = part as { $ref?: string; properties?: Json };
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1) as string;
    return refs.includes(name) ? name : contentOf(document.components.schemas[name], document, [...refs, name]);
  }
  const texts = ['description', 'example', 'title'];
  const kept = Object.entries(others).filter(([key]) => !texts.includes(key));
  const named = Object.entries(properties ?? {}).map(([key, one]) => [`.${key}`, one] as const);
  const entries = [...kept, ...named].sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, one]) => [key, contentOf(one, document, refs)]);
}

describe('The contract of the REST interfaces', () => {
  it('keeps each operation with its statuses and schemas (UPDATE_PAGES=1 writes contract.txt)', () => {
    const lines = Object.entries(DOCUMENTS).flatMap(([name, document]) =>
      linesOf(name, document as unknown as Document)
    );
    if (process.env.UPDATE_PAGES === '1') writeFileSync(FILE, `${[HEAD, ...lines].join('\n')}\n`);
    const kept = readFileSync(FILE, 'utf8').trim().split('\n').slice(1);
    const gone = kept.filter((line) => !lines.includes(line)).map((line) => `- ${line}`);
    const added = lines.filter((line) => !kept.includes(line)).map((line) => `+ ${line}`);
    assert.deepEqual(
      [...gone, ...added].sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1)),
      []
    );
  });
});
