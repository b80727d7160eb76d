import Type, { type TSchema } from 'typebox';
import { CODES } from './codes.ts';
import type { Operation } from './operation.ts';

/** A JSON value of an OpenAPI document. */
type Json = Readonly<Record<string, unknown>>;

/** What the document says about a mount. */
interface Mount {
  readonly revision: string;
  readonly prefixes: readonly string[];
  readonly maxRowLimit: number;
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
    hasnext: { type: 'boolean', description: 'Whether a next page exists' },
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
  properties: { code: { type: 'integer', description: 'What is wrong; not 0' }, message: TEXT }
};

/** The OpenAPI 3.1 document of the operations of a mount. The schemas of requests are those by which they are checked. */
export function openApi(operations: readonly Operation[], mount: Mount): Json {
  const names = new Map<string, number>();
  for (const { name } of operations) names.set(name, (names.get(name) ?? 0) + 1);
  const paths: Record<string, Record<string, Json>> = {};
  for (const row of operations) {
    const path = row.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    // the original has names that stand for several operations
    const operationId =
      names.get(row.name) === 1 ? row.name : `${row.name}:${row.path.split('/').filter(Boolean).join('.')}`;
    paths[path][row.method.toLowerCase()] = operationObject(row, operationId, mount);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `Broker management, revision "${mount.revision}"`,
      version: mount.version,
      description: 'Every answer has an integer `code`, which is 0 on success; other codes come with a `message`.'
    },
    servers: mount.prefixes.map((url) => ({ url: url === '' ? '/' : url })),
    security: [{ basic: [] }],
    paths,
    components: {
      securitySchemes: {
        basic: { type: 'http', scheme: 'basic', description: 'Id and secret of an application' }
      },
      responses: Object.fromEntries(statuses().map((status) => [`Fault${status}`, faultResponse(status)]))
    }
  };
}

function operationObject(row: Operation, operationId: string, mount: Mount): Json {
  const hasBody = row.body !== undefined;
  return {
    operationId,
    summary: row.descr,
    tags: [
      row.path.split('/').find((segment) => segment !== '' && segment !== 'nodes' && !segment.startsWith(':')) ??
        'index'
    ],
    ...listOf('parameters', [...pathParameters(row), ...queryParameters(row), ...pageParameters(row, mount)]),
    ...(hasBody
      ? { requestBody: { required: !Type.IsOptional(row.body), content: { 'application/json': { schema: row.body } } } }
      : {}),
    responses: {
      200: {
        description: 'Success',
        content: { 'application/json': { schema: answerSchema(row) } }
      },
      ...Object.fromEntries(
        statuses()
          .filter((status) => hasBody || (status !== 413 && status !== 408))
          .map((status) => [status, { $ref: `#/components/responses/Fault${status}` }])
      )
    }
  };
}

function listOf(name: string, list: readonly Json[]): Json {
  return list.length === 0 ? {} : { [name]: list };
}

function pathParameters({ path }: Operation): Json[] {
  return [...path.matchAll(/:([^/]+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: TEXT }));
}

function queryParameters({ query }: Operation): Json[] {
  if (query === undefined) return [];
  const required = (query.required ?? []) as readonly string[];
  return Object.entries(query.properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & { readonly description?: string };
    return { name, in: 'query', required: required.includes(name), ...(description && { description }), schema };
  });
}

function pageParameters({ paged, hasCursor }: Operation, { maxRowLimit }: Mount): Json[] {
  if (paged === undefined) return [];
  const limit = paged === 'max' ? maxRowLimit : Math.min(paged, maxRowLimit);
  const integer = (fallback: number) => ({ type: 'integer', minimum: 1, default: fallback });
  return [
    { name: '_page', in: 'query', description: 'Number of the page', schema: integer(1) },
    { name: '_limit', in: 'query', description: 'Rows of a page', schema: { ...integer(limit), maximum: maxRowLimit } },
    ...(hasCursor === true ? [{ name: 'cursor', in: 'query', description: CURSOR, schema: TEXT }] : [])
  ];
}

function answerSchema({ data, paged }: Operation): Json {
  if (data === undefined && paged === undefined)
    return { type: 'object', required: ['code'], properties: { code: CODE } };
  const rows = data ?? { type: 'array', items: { type: 'object' } };
  const properties = { code: CODE, data: rows, ...(paged === undefined ? {} : { meta: META }) };
  return { type: 'object', required: Type.IsOptional(data) ? ['code'] : ['code', 'data'], properties };
}

/** The statuses of faults, in ascending order. */
function statuses(): number[] {
  return [...new Set(Object.values(CODES).map(({ status }) => status))].sort((a, b) => a - b);
}

function faultResponse(status: number): Json {
  const codes = Object.values(CODES).flatMap((row) => (row.status === status ? [row.code] : []));
  const description = `Code ${[...new Set(codes)].sort((a, b) => a - b).join(', ')}`;
  return { description, content: { 'application/json': { schema: FAULT } } };
}
