import type { Json } from '../rest/index.ts';
import { type DocumentSchemas, type DocumentStyle, type Example, type Operation, shown } from '../rest/kit/index.ts';
import type { StreamsMembers } from './operation.ts';
import type { StreamsSettings } from './options.ts';

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
const FAULT_CONTENT = {
  'text/plain': { schema: TEXT },
  'application/json': { schema: { $ref: '#/components/schemas/Fault' } }
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

/** The parts of the OpenAPI document of a mount that are the same for all operations. */
export function documentStyle(
  { credentials, prefix }: StreamsSettings,
  version: string
): DocumentStyle<StreamsMembers> {
  const asks = credentials !== 'none' && credentials !== 'host';
  // with `remote`, requests of this machine need no credentials
  const security = credentials === 'remote' ? [{}, { basic: [] }] : [{ basic: [] }];
  return {
    info: {
      title: 'Stream rules',
      version,
      description:
        'Commands are answered with a sentence in text, queries with JSON. Errors are text, "PREFIX: MESSAGE"; with "Accept: application/json" an object with a code.'
    },
    prefixes: prefix,
    revision: undefined,
    revisionName: '',
    security: asks ? security : [],
    basic: { type: 'http', scheme: 'basic' },
    maxRowLimit: 0,
    schemas: { Fault: FAULT },
    faults: Object.fromEntries(
      Object.entries(FAULTS).map(([status, description]) => [status, { description, content: FAULT_CONTENT }])
    ),
    tagOf: ({ path }) => path.split('/').find((segment) => segment !== '' && segment !== 'v2') ?? 'service',
    contentOf,
    hasFault: ({ errorPrefix }, status) => (status === 503 ? errorPrefix !== undefined : undefined)
  };
}

function contentOf({ data, contentType }: Operation, schemas: DocumentSchemas, example: Example | undefined): Json {
  if (data === undefined) return { 'text/plain': { schema: TEXT, ...shown(example?.data) } };
  const text = contentType === undefined ? {} : { 'text/plain': { schema: TEXT } };
  return { ...text, 'application/json': { schema: schemas.of(data), ...shown(example?.data) } };
}
