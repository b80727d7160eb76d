import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { OpenApiDocument } from 'embermq/management';

// biome-ignore lint/suspicious/noExplicitAny: schemas and operations of a document
type Json = any;

/** The first line of the files. */
export const HEAD = '// Written by `UPDATE_OPENAPI=1 npm test -- openapi-files` from the operations. Do not edit.';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** Write the TypeScript declarations of the operations of a document. @param name of their interface */
export function typesOf(document: OpenApiDocument, name: string): string {
  const { Fault: _, Meta: __, ...records } = document.components.schemas as Readonly<Record<string, Json>>;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => answerOf(methods[method]) !== undefined).map((method) =>
      operationType(path, method, methods[method] as Json)
    )
  );
  const parts = [
    HEAD,
    ...Object.entries(records).map(([title, schema]) => `export interface ${title} ${typeOf(schema)}`),
    `/** ${document.info.title}: its operations, and what they get and give. */`,
    `export interface ${name} {`,
    ...operations,
    '}'
  ];
  return formatted(parts.join('\n\n'));
}

/** The schema of the answer. @returns undefined for streams of events, which are not read with the client */
function answerOf(operation: Json): Json {
  const { content } = operation?.responses[200] ?? operation?.responses[201] ?? {};
  return (content?.['application/json'] ?? content?.['text/plain'])?.schema;
}

function operationType(path: string, method: string, operation: Json): string {
  const { summary, parameters = [], requestBody } = operation;
  const named = (place: string) => parameters.filter((one: Json) => one.in === place);
  const properties = (list: Json[]) => ({
    type: 'object',
    required: list.filter((one) => one.required).map((one) => one.name),
    properties: Object.fromEntries(list.map(({ name, description, schema }) => [name, { description, ...schema }]))
  });
  const [params, query] = [named('path'), named('query')];
  const schema = answerOf(operation);
  // an answer without an envelope is the data itself
  const data = schema.properties?.code === undefined ? schema : schema.properties.data;
  const isOptional = data !== undefined && data !== schema && !schema.required.includes('data');
  return [
    comment(summary),
    `'${method.toUpperCase()} ${path}': {`,
    ...(params.length === 0 ? [] : [`params: ${typeOf(properties(params))};`]),
    ...(query.length === 0
      ? []
      : [`query${query.some((one: Json) => one.required) ? '' : '?'}: ${typeOf(properties(query))};`]),
    ...(requestBody === undefined
      ? []
      : [`body${requestBody.required ? '' : '?'}: ${typeOf(requestBody.content['application/json'].schema)};`]),
    `data: ${data === undefined ? 'undefined' : typeOf(data)}${isOptional ? ' | undefined' : ''};`,
    ...(schema.properties?.meta === undefined ? [] : ['isPaged: true;']),
    '};'
  ].join('\n');
}

function typeOf(schema: Json): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((one: unknown) => JSON.stringify(one)).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map((one: Json) => typeOf(one)).join(' | ');
  if (schema.not !== undefined) return 'never';
  if (schema.type === 'array') return `(${typeOf(schema.items ?? {})})[]`;
  if (schema.type === 'object') return objectType(schema);
  return (
    { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }[
      schema.type as 'string'
    ] ?? 'unknown'
  );
}

function objectType({ properties, required = [], additionalProperties }: Json): string {
  if (properties === undefined) {
    const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown';
    return `{ [name: string]: ${values} }`;
  }
  const lines = Object.entries<Json>(properties).map(
    ([name, one]) => `${comment(one.description)}'${name}'${required.includes(name) ? '' : '?'}: ${typeOf(one)};`
  );
  return `{\n${lines.join('\n')}\n}`;
}

function comment(text: string | undefined): string {
  return text === undefined ? '' : `/** ${text.replaceAll('*/', '*\\/')} */\n`;
}

function formatted(source: string): string {
  const biome = join(dirname(createRequire(import.meta.url).resolve('@biomejs/biome/package.json')), 'bin/biome');
  const args = [biome, 'format', '--stdin-file-path=adapters/management/client/types.ts'];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { input: source, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
