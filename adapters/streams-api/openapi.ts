import * as Type from 'typebox';
import { type Credentials, DocumentSchemas, type Json, type OpenApiDocument } from '../rest/index.ts';
import type { Operation } from './operation.ts';

/** Facts about a mount that its document contains. */
interface Mount {
  readonly prefixes: readonly string[];
  readonly credentials: Credentials;
  /** Version of the broker. */
  readonly version: string;
}

const TEXT: Json = { type: 'string' };
const FAULT: Json = {
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'integer',
      description:
        '1000: not classified, 1002: not found, 1003: input or output, 1004: not JSON, 2001: SQL syntax, 2101: plan, 2201: the service is stopped, 3000: stream or table, 4000: rule, 5000: configuration'
    },
    message: { type: 'string', description: 'The description of the fault, for people' }
  }
};

/** The answers to faults, by status. */
const FAULTS: Readonly<Record<number, string>> = {
  400: 'The request is invalid',
  401: 'Credentials are wrong or missing',
  403: 'The credentials, the origin or the host are not allowed to do this',
  404: 'It does not exist',
  408: 'The body has not arrived in time',
  413: 'The body is too large',
  422: 'The rule is invalid',
  429: 'Too many failed logins',
  500: 'An internal error',
  503: 'The stream service is stopped, or the store has failed'
};

/** Make the OpenAPI 3.1 document of the operations. Requests are validated against the same schemas. */
export function openApi(operations: readonly Operation[], mount: Mount): OpenApiDocument {
  const schemas = new DocumentSchemas('streams');
  const asks = mount.credentials !== 'none' && mount.credentials !== 'host';
  const paths: Record<string, Record<string, Json>> = {};
  for (const row of operations) {
    const path = row.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][row.method.toLowerCase()] = operationObject(row, schemas);
  }
  // requests of this machine need no credentials
  const security = mount.credentials === 'remote' ? [{}, { basic: [] }] : [{ basic: [] }];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Stream rules',
      version: mount.version,
      description:
        'Commands are answered with a sentence in text, queries with JSON. Errors are text, "PREFIX: MESSAGE"; with "Accept: application/json" an object with a code.'
    },
    servers: mount.prefixes.map((url) => ({ url: url === '' ? '/' : url })),
    security: asks ? security : [],
    paths,
    components: {
      schemas: { ...schemas.components, Fault: FAULT },
      responses: faultResponses(),
      ...(asks ? { securitySchemes: { basic: { type: 'http', scheme: 'basic' } } } : {})
    }
  };
}

function operationObject(row: Operation, schemas: DocumentSchemas): Json {
  const parameters = [...pathParameters(row), ...queryParameters(row, schemas)];
  const { example } = row;
  return {
    operationId: row.name,
    summary: row.descr,
    tags: [row.path.split('/').find((segment) => segment !== '' && segment !== 'v2') ?? 'service'],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(row.body === undefined
      ? {}
      : {
          requestBody: {
            required: !Type.IsOptional(row.body),
            content: { 'application/json': { schema: schemas.of(row.body), ...shown(example?.body) } }
          }
        }),
    responses: {
      [row.status ?? 200]: { description: 'Success', content: contentOf(row, schemas) },
      ...Object.fromEntries(
        statusesOf(row).map((status) => [status, { $ref: `#/components/responses/Fault${status}` }])
      )
    }
  };
}

function contentOf({ answer, isTextByDefault, example }: Operation, schemas: DocumentSchemas): Json {
  const text = { 'text/plain': { schema: TEXT, ...(answer === 'text' ? shown(example?.answer) : {}) } };
  if (answer === 'text') return text;
  const json = { 'application/json': { schema: schemas.of(answer), ...shown(example?.answer) } };
  return isTextByDefault === true ? { ...text, ...json } : json;
}

function shown(example: unknown): Json {
  return example === undefined ? {} : { example };
}

function pathParameters({ path, example }: Operation): Json[] {
  return [...path.matchAll(/:([^/]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: TEXT,
    ...shown(example?.params?.[name])
  }));
}

function queryParameters({ query, example }: Operation, schemas: DocumentSchemas): Json[] {
  if (query === undefined) return [];
  return Object.entries(schemas.properties(query)).map(([name, property]) => {
    const { description, ...schema } = schemas.of(property);
    return {
      name,
      in: 'query',
      ...(description === undefined ? {} : { description }),
      schema,
      ...shown(example?.query?.[name])
    };
  });
}

/** The statuses of faults that an operation may have. */
function statusesOf({ name, path, query, body, errorPrefix }: Operation): number[] {
  return Object.keys(FAULTS)
    .map(Number)
    .filter((status) => {
      if (status === 400) return path.includes(':') || query !== undefined || body !== undefined;
      if (status === 404) return path.includes(':');
      if (status === 408 || status === 413) return body !== undefined;
      if (status === 422) return name === 'validateRule';
      return status === 503 ? errorPrefix !== undefined : true;
    });
}

function faultResponses(): Record<string, Json> {
  const schema = { $ref: '#/components/schemas/Fault' };
  return Object.fromEntries(
    Object.entries(FAULTS).map(([status, description]) => [
      `Fault${status}`,
      { description, content: { 'text/plain': { schema: TEXT }, 'application/json': { schema } } }
    ])
  );
}
