import * as Type from 'typebox';
import type { Json } from '../rest/index.ts';
import { type DocumentSchemas, type DocumentStyle, type Example, type Operation, shown } from '../rest/kit/index.ts';
import { CODES } from './codes.ts';
import type { ManagementMembers } from './operation.ts';
import type { ManagementSettings } from './options.ts';
import { REVISION_ROWS } from './revisions.ts';

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
const FAULT: Json = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'integer', description: 'The code of the fault; not 0' },
    message: { type: 'string', description: 'The description of the fault, for people' }
  }
};
const FAULT_REF: Json = { $ref: '#/components/schemas/Fault' };

/** The parts of the OpenAPI document of a mount that are the same for all operations. */
export function documentStyle(settings: ManagementSettings, version: string): DocumentStyle<ManagementMembers> {
  const { credentials, errors, maxRowLimit, prefix, revision } = settings;
  const isOriginal = errors === 'original';
  const asks = credentials !== 'none' && credentials !== 'host';
  return {
    info: {
      title: `Broker management, revision "${revision}"`,
      version,
      description: isOriginal
        ? 'Success is answered with the `code` 0, most faults with status 200 and a `message`.'
        : 'Every answer has an integer `code`, which is 0 on success; other codes come with a `message`.'
    },
    prefixes: prefix,
    revision: REVISION_ROWS[revision],
    revisionName: revision,
    security: asks ? [{ basic: [] }] : [],
    basic: { type: 'http', scheme: 'basic', description: 'The id and the secret' },
    maxRowLimit,
    schemas: { Fault: isOriginal ? { ...FAULT, required: ['message'] } : FAULT, Meta: META },
    faults: faultAnswers(isOriginal),
    tagOf,
    contentOf: (row, schemas, example) => contentOf(row, isOriginal, { schemas, example }),
    hasFault: ({ body, path }, status) => (status === 404 ? path.includes(':') || body !== undefined : undefined)
  };
}

/** The first segment of the path that identifies the subject of the operation. */
function tagOf({ path }: Operation): string {
  const fixed = path.split('/').filter((segment) => segment !== '' && !segment.startsWith(':'));
  return fixed.find((segment) => segment !== 'nodes' && segment !== 'x') ?? fixed[0] ?? 'index';
}

function contentOf(
  row: Operation,
  isOriginal: boolean,
  { schemas, example }: { readonly schemas: DocumentSchemas; readonly example: Example | undefined }
): Json {
  const { contentType, data, isStream, paged } = row;
  if (isStream === true || contentType !== undefined)
    return { [contentType ?? 'text/event-stream']: { schema: data === undefined ? TEXT : schemas.of(data) } };
  const success = successSchema(row, schemas);
  const isBare = data === undefined && paged === undefined;
  const given =
    example?.data !== undefined ? { code: 0, data: example.data } : example && isBare ? { code: 0 } : undefined;
  const schema = isOriginal ? { anyOf: [success, FAULT_REF] } : success;
  return { 'application/json': { schema, ...shown(given) } };
}

function successSchema({ data, paged }: Operation, schemas: DocumentSchemas): Json {
  if (data === undefined && paged === undefined)
    return { type: 'object', required: ['code'], properties: { code: CODE } };
  const rows = data === undefined ? { type: 'array', items: { type: 'object' } } : schemas.of(data);
  const meta = paged === undefined ? {} : { meta: { $ref: '#/components/schemas/Meta' } };
  const required = data !== undefined && Type.IsOptional(data) ? ['code'] : ['code', 'data'];
  return { type: 'object', required, properties: { code: CODE, data: rows, ...meta } };
}

/** The answers to faults by status, with the codes of each. */
function faultAnswers(isOriginal: boolean): Record<number, Json> {
  if (isOriginal) {
    const statuses = Object.values(CODES).map(({ original }) => original.status);
    const answer = { description: 'Fault', content: { 'text/plain': { schema: TEXT } } };
    return Object.fromEntries(statuses.filter((status) => status !== 200).map((status) => [status, answer]));
  }
  const codes: Record<number, Set<number>> = {};
  for (const { status, code } of Object.values(CODES)) (codes[status] ??= new Set()).add(code);
  const entries = Object.entries(codes).map(([status, some]): [string, Json] => {
    const listed = [...some].sort((a, b) => a - b).join(', ');
    return [status, { description: `Code ${listed}`, content: { 'application/json': { schema: FAULT_REF } } }];
  });
  return Object.fromEntries(entries);
}
