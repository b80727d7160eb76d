// The document is made from the rows and schemas by which requests are checked, so it cannot differ from them; what
// is only for people is in the descriptions of schemas and in the examples, which a test executes. A mount has its
// own document, because revisions have other paths, names and statuses.

import * as Type from 'typebox';
import type { Json, OpenApiDocument } from '../document.ts';
import { DocumentSchemas } from './document-schemas.ts';
import { type Example, exampleOf, type Operation, type RevisionOf } from './operation.ts';
import { pathParameterAbout } from './path-parameters.ts';

/** The parts of a document that only one interface has. @typeParam M see `Operation` */
export interface DocumentStyle<M = unknown> {
  readonly info: OpenApiDocument['info'];
  readonly prefixes: readonly string[];
  /** The revision, for examples that differ. */
  readonly revision: RevisionOf<M>;
  /** The name of the revision, for schemas that differ; '' if the interface has no revisions. */
  readonly revisionName: string;
  /** The accepted credentials. Empty: requests need none. */
  readonly security: readonly Json[];
  /** The description of the credentials. */
  readonly basic: Json;
  /** The greatest `_limit` of a list. */
  readonly maxRowLimit: number;
  /** Schemas in addition to those of rows with a title. */
  readonly schemas: Readonly<Record<string, Json>>;
  /** The answers to faults, by status. */
  readonly faults: Readonly<Record<number, Json>>;
  /** The subject of an operation. */
  tagOf(row: Operation): string;
  /** The media types of the answer of an operation. */
  contentOf(row: Operation, schemas: DocumentSchemas, example: Example | undefined): Json;
  /** Tell whether an operation can have faults of a status. Default: as its input allows. */
  hasFault?(row: Operation, status: number): boolean | undefined;
}

const TEXT: Json = { type: 'string' };
const CURSOR =
  'The `meta.cursor` of the page before, instead of `_page`: no row is repeated or skipped because others come or go';

/** Make the OpenAPI 3.1 document of the operations of a mount. Requests are validated against the same schemas. */
export function openApi<M>(operations: readonly Operation<M>[], style: DocumentStyle<M>): OpenApiDocument {
  const schemas = new DocumentSchemas(style.revisionName);
  const names = new Map<string, number>();
  for (const { name } of operations) names.set(name, (names.get(name) ?? 0) + 1);
  const paths: Record<string, Record<string, Json>> = {};
  for (const row of operations) {
    const path = row.path.replace(/:([^/]+)/g, '{$1}');
    paths[path] ??= {};
    // the original interface uses one name for several operations
    const operationId = names.get(row.name) === 1 ? row.name : `${row.name}_${wordsOf(row.path)}`;
    paths[path][row.method.toLowerCase()] = { operationId, ...operationObject(row, style, schemas) };
  }
  const responses = Object.entries(style.faults).map(([status, answer]) => [`Fault${status}`, answer]);
  return {
    openapi: '3.1.0',
    info: style.info,
    servers: style.prefixes.map((url) => ({ url: url === '' ? '/' : url })),
    security: style.security,
    paths,
    components: {
      schemas: { ...schemas.components, ...style.schemas },
      responses: Object.fromEntries(responses),
      ...(style.security.length === 0 ? {} : { securitySchemes: { basic: style.basic } })
    }
  };
}

/** `/acl/$all/topic/:topic` as a part of an identifier: `acl_all_topic_topic`. */
function wordsOf(path: string): string {
  return path.match(/\w+/g)?.join('_') ?? '';
}

function operationObject<M>(row: Operation<M>, style: DocumentStyle<M>, schemas: DocumentSchemas): Json {
  const example = exampleOf(row, style.revision);
  const { body } = row;
  const parameters = [
    ...pathParameters(row, example),
    ...queryParameters(row, example, schemas),
    ...pageParameters(row, style)
  ];
  const requestBody = body && {
    required: !Type.IsOptional(body),
    content: { 'application/json': { schema: schemas.of(body), ...shown(example?.body) } }
  };
  const success = { description: 'Success', content: style.contentOf(row, schemas, example) };
  const faults = Object.keys(style.faults)
    .filter((status) => hasFault(row, Number(status), style))
    .map((status) => [status, { $ref: `#/components/responses/Fault${status}` }]);
  return {
    summary: row.descr,
    tags: [style.tagOf(row)],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: { [row.status ?? 200]: success, ...Object.fromEntries(faults) }
  };
}

function pathParameters({ path }: Operation, example: Example | undefined): Json[] {
  return path.split('/').flatMap((segment, at, segments) => {
    if (!segment.startsWith(':')) return [];
    const name = segment.slice(1);
    const description = pathParameterAbout(segments[at - 1], name);
    return [{ name, in: 'path', required: true, description, schema: TEXT, ...shown(example?.params?.[name]) }];
  });
}

function queryParameters({ query }: Operation, example: Example | undefined, schemas: DocumentSchemas): Json[] {
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

/** The example of a value, if there is one. */
export function shown(example: unknown): Json {
  return example === undefined ? {} : { example };
}

function pageParameters({ paged, hasCursor }: Operation, { maxRowLimit }: DocumentStyle): Json[] {
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

function hasFault(row: Operation, status: number, style: DocumentStyle): boolean {
  const { path, query, body, paged, refusal } = row;
  if (status === 400) return query !== undefined || body !== undefined || paged !== undefined || path.includes(':');
  if (status === 408 || status === 413) return body !== undefined;
  if (status === 422) return refusal === status;
  return style.hasFault?.(row, status) ?? (status !== 404 || path.includes(':'));
}
