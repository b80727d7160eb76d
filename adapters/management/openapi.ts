// The document is made from the rows and schemas by which requests are checked, so it cannot differ from them; what
// is only for people is in the descriptions of schemas and in the examples, which a test executes. A mount has its
// own document, because revisions have other paths, names and statuses.

import type { TObject } from 'typebox';
import * as Type from 'typebox';
import { DocumentSchemas, type Json, type OpenApiDocument } from '../rest/index.ts';
import { CODES } from './codes.ts';
import { type Example, type Operation, requestOf } from './operation.ts';
import type { Revision } from './revisions.ts';

/** Facts about a mount that its document contains. */
interface Mount {
  readonly revision: Revision;
  readonly prefixes: readonly string[];
  readonly maxRowLimit: number;
  /** With `errors: 'original'`. */
  readonly isOriginal: boolean;
  /** True if this interface checks the credentials of requests. */
  readonly asksForCredentials: boolean;
  /** Version of the broker. */
  readonly version: string;
}

const TEXT: Json = { type: 'string' };
const CODE: Json = { type: 'integer', description: '0: success' };
const META: Json = {
  type: 'object',
  required: ['page', 'limit', 'count'],
  properties: {
    page: { type: 'integer', description: 'Number of the page, from 1; 1 if a cursor was given' },
    limit: { type: 'integer', description: 'Rows of a page' },
    count: {
      type: 'integer',
      description: 'Rows of the whole list; -1: not counted, because the query has conditions'
    },
    hasnext: { type: 'boolean', description: 'True if there is a next page' },
    cursor: {
      type: 'string',
      description: 'Lists below `/x/`: the parameter `cursor` of the next page; absent on the last page'
    }
  }
};
const CURSOR =
  'The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go';
const FAULT: Json = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'integer', description: 'The code of the fault; not 0' },
    message: { type: 'string', description: 'The description of the fault, for people' }
  }
};
const ORIGINAL_FAULT: Json = { type: 'object', required: ['message'], properties: FAULT.properties };

/** Make the OpenAPI 3.1 document of the operations of a mount. Requests are validated against the same schemas. */
export function openApi(operations: readonly Operation[], mount: Mount): OpenApiDocument {
  const schemas = new DocumentSchemas(mount.revision.name);
  const names = new Map<string, number>();
  for (const { name } of operations) names.set(name, (names.get(name) ?? 0) + 1);
  const paths: Record<string, Record<string, Json>> = {};
  for (const row of operations) {
    const path = row.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    // the original interface uses one name for several operations
    const operationId = names.get(row.name) === 1 ? row.name : `${row.name}_${wordsOf(row.path)}`;
    paths[path][row.method.toLowerCase()] = { operationId, ...operationObject(row, mount, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `Broker management, revision "${mount.revision.name}"`,
      version: mount.version,
      description: mount.isOriginal
        ? 'Success is answered with the `code` 0, most faults with status 200 and a `message`.'
        : 'Every answer has an integer `code`, which is 0 on success; other codes come with a `message`.'
    },
    servers: mount.prefixes.map((url) => ({ url: url === '' ? '/' : url })),
    security: mount.asksForCredentials ? [{ basic: [] }] : [],
    paths,
    components: {
      ...componentsOf('schemas', {
        ...schemas.components,
        Fault: mount.isOriginal ? ORIGINAL_FAULT : FAULT,
        Meta: META
      }),
      ...componentsOf('responses', faultResponses(mount)),
      ...(mount.asksForCredentials
        ? { securitySchemes: { basic: { type: 'http', scheme: 'basic', description: 'The id and the secret' } } }
        : {})
    }
  };
}

/** `/acl/$all/topic/:topic` as a part of an identifier: `acl_all_topic_topic`. */
function wordsOf(path: string): string {
  return path.match(/\w+/g)?.join('_') ?? '';
}

function componentsOf(name: string, components: Readonly<Record<string, Json>>) {
  return { [name]: components };
}

function operationObject(row: Operation, mount: Mount, schemas: DocumentSchemas): Json {
  const example = exampleOf(row, mount.revision);
  const { query, body } = requestOf(row, mount.isOriginal);
  const parameters = [
    ...pathParameters(row, example),
    ...queryParameters(query, example, schemas),
    ...pageParameters(row, mount)
  ];
  const media = (schema: Json, shown: unknown) => ({
    content: { 'application/json': { schema, ...(shown === undefined ? {} : { example: shown }) } }
  });
  return {
    summary: row.descr,
    tags: [tagOf(row)],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: !Type.IsOptional(body), ...media(schemas.of(body), example?.body) } }),
    responses: {
      200: {
        description: 'Success',
        ...(row.isStream === true || row.contentType !== undefined
          ? {
              content: {
                [row.contentType ?? 'text/event-stream']: {
                  schema: row.data === undefined ? TEXT : schemas.of(row.data)
                }
              }
            }
          : media(answerSchema(row, mount, schemas), answerExample(row, example)))
      },
      ...Object.fromEntries(
        statusesOf(row, mount).map((status) => [status, { $ref: `#/components/responses/Fault${status}` }])
      )
    }
  };
}

/** The example of a row in a revision. */
export function exampleOf({ example }: Operation, revision: Revision): Example | undefined {
  return typeof example === 'function' ? example(revision) : example;
}

/** The first segment of the path that identifies the subject of the operation. */
function tagOf({ path }: Operation): string {
  const fixed = path.split('/').filter((segment) => segment !== '' && !segment.startsWith(':'));
  return fixed.find((segment) => segment !== 'nodes' && segment !== 'x') ?? fixed[0] ?? 'index';
}

function pathParameters({ path }: Operation, example: Example | undefined): Json[] {
  return paramsOf(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: TEXT,
    ...shown(example?.params?.[name])
  }));
}

/** The names of the parameters of a path. */
function paramsOf(path: string): string[] {
  return [...path.matchAll(/:([^/]+)/g)].map(([, name]) => name);
}

function queryParameters(query: TObject | undefined, example: Example | undefined, schemas: DocumentSchemas): Json[] {
  if (query === undefined) return [];
  const properties = schemas.properties(query);
  const required = schemas.required(query, properties);
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = schemas.of(property);
    return {
      name,
      in: 'query',
      ...(required.includes(name) ? { required: true } : {}),
      ...(description === undefined ? {} : { description }),
      schema,
      ...shown(example?.query?.[name])
    };
  });
}

function shown(example: unknown): Json {
  return example === undefined ? {} : { example };
}

function pageParameters({ paged, hasCursor }: Operation, { maxRowLimit }: Mount): Json[] {
  if (paged === undefined) return [];
  const limit = paged === 'max' ? maxRowLimit : Math.min(paged, maxRowLimit);
  const integer = (fallback: number) => ({ type: 'integer', minimum: 1, default: fallback });
  return [
    { name: '_page', in: 'query', description: 'Number of the page; less than 1 counts as 1', schema: integer(1) },
    {
      name: '_limit',
      in: 'query',
      description: 'Rows of a page; more than the greatest number counts as that',
      schema: { ...integer(limit), maximum: maxRowLimit }
    },
    ...(hasCursor === true ? [{ name: 'cursor', in: 'query', description: CURSOR, schema: TEXT }] : [])
  ];
}

function answerSchema(row: Operation, { isOriginal }: Mount, schemas: DocumentSchemas): Json {
  const success = successSchema(row, schemas);
  return isOriginal ? { anyOf: [success, { $ref: '#/components/schemas/Fault' }] } : success;
}

function successSchema({ data, paged }: Operation, schemas: DocumentSchemas): Json {
  if (data === undefined && paged === undefined)
    return { type: 'object', required: ['code'], properties: { code: CODE } };
  const rows = data === undefined ? { type: 'array', items: { type: 'object' } } : schemas.of(data);
  const meta = paged === undefined ? {} : { meta: { $ref: '#/components/schemas/Meta' } };
  const required = data !== undefined && Type.IsOptional(data) ? ['code'] : ['code', 'data'];
  return { type: 'object', required, properties: { code: CODE, data: rows, ...meta } };
}

function answerExample({ data, paged }: Operation, example: Example | undefined): Json | undefined {
  if (example?.data !== undefined) return { code: 0, data: example.data };
  return example !== undefined && data === undefined && paged === undefined ? { code: 0 } : undefined;
}

/** The statuses of the faults that a mount answers, in ascending order, with the reasons for each. */
function statuses({ isOriginal }: Mount): Map<number, (typeof CODES)[keyof typeof CODES][]> {
  const found = new Map<number, (typeof CODES)[keyof typeof CODES][]>();
  for (const row of Object.values(CODES)) {
    const { status } = isOriginal ? row.original : row;
    if (status !== 200) found.set(status, [...(found.get(status) ?? []), row]);
  }
  return new Map([...found].sort(([a], [b]) => a - b));
}

/** The statuses of faults that an operation may have. */
function statusesOf({ path, query, body, paged }: Operation, mount: Mount): number[] {
  const hasInput = query !== undefined || body !== undefined || paged !== undefined || path.includes(':');
  return [...statuses(mount).keys()].filter((status) => {
    if (status === 400) return hasInput;
    if (status === 404) return path.includes(':') || body !== undefined;
    return status === 413 || status === 408 ? body !== undefined : true;
  });
}

function faultResponses(mount: Mount): Record<string, Json> {
  const entries = [...statuses(mount)].map(([status, rows]): [string, Json] => {
    if (mount.isOriginal)
      return [`Fault${status}`, { description: 'Fault', content: { 'text/plain': { schema: TEXT } } }];
    const codes = [...new Set(rows.map(({ code }) => code))].sort((a, b) => a - b);
    const schema = { $ref: '#/components/schemas/Fault' };
    return [`Fault${status}`, { description: `Code ${codes.join(', ')}`, content: { 'application/json': { schema } } }];
  });
  return Object.fromEntries(entries);
}
