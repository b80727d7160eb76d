// The TypeScript declarations of the operations of an OpenAPI document, for the typed clients.
//
// Types that the compiler infers from the rows would need no generator. Tried with 20 rows (clients and connections in the cluster and on a node,
// publish, a batch, the stream of events), compiled without skipLibCheck, in TypeScript 5.9 and 5.4: both compile, but the check of an app that sends six
// requests took 30 to 41 s and 25 to 32 s instead of 2.8 s (3,600,000 and 4,900,000 instantiations instead of 5,000; 620 MB instead of 83), and
// that of the rows alone 17 s. The inferred fields have no documentation in an editor, because descriptions are strings of schemas and not comments.

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const PRIMITIVES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };

/** The texts of the members of operations. */
const COLUMNS = {
  params: 'The values in the path.',
  query: 'The parameters behind the path.',
  body: 'The body, sent as JSON.',
  data: 'The data of the answer.',
  isPaged: 'The answer is a page of a list.'
};

/** Write the declarations. @param name of the interface with the operations */
export function typesOf(document, name) {
  const { paths, components } = described(document, document.components.schemas);
  const { Fault: _, Meta: __, ...records } = components.schemas;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => answerOf(methods[method]) !== undefined).map((method) =>
      member(`${method.toUpperCase()} ${path}`, block(operationType(methods[method])), methods[method].summary)
    )
  );
  return [
    '// Written from the operations by `node .ci/write-types`, and not in git.',
    ...Object.entries(records).map(
      ([title, schema]) => `${comment(schema.description)}export interface ${title} ${typeOf(schema)}`
    ),
    `/** ${document.info.title}: its operations, and what they get and give. */\nexport interface ${name} ${block(operations)}`,
    ''
  ].join('\n\n');
}

/** A copy of a part of the document, in which references have the descriptions of their targets, and lists those of their entries. */
function described(part, schemas) {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map((one) => described(one, schemas));
  const copy = Object.fromEntries(Object.entries(part).map(([name, one]) => [name, described(one, schemas)]));
  if (copy.$ref !== undefined) copy.description ??= schemas[copy.$ref.split('/').at(-1)]?.description;
  if (copy.type === 'array') copy.description ??= copy.items?.description;
  return copy;
}

/** The schema of the answer. @returns undefined for streams of events, which are not read with the client */
function answerOf(operation) {
  const { content } = operation?.responses[200] ?? operation?.responses[201] ?? {};
  return (content?.['application/json'] ?? content?.['text/plain'])?.schema;
}

function operationType(operation) {
  const { parameters = [], requestBody } = operation;
  const named = (place) => parameters.filter((one) => one.in === place);
  const properties = (list) => ({
    type: 'object',
    required: list.filter((one) => one.required).map((one) => one.name),
    properties: Object.fromEntries(list.map(({ name, description, schema }) => [name, { description, ...schema }]))
  });
  const [params, query] = [named('path'), named('query')];
  const schema = answerOf(operation);
  // an answer without an envelope is the data itself
  const data = schema.properties?.code === undefined ? schema : schema.properties.data;
  const isOptional = data !== undefined && data !== schema && !schema.required.includes('data');
  const members = [];
  const add = (name, type, isRequired = true) => members.push(member(name, type, COLUMNS[name], isRequired));
  if (params.length > 0) add('params', typeOf(properties(params)));
  if (query.length > 0)
    add(
      'query',
      typeOf(properties(query)),
      query.some((one) => one.required)
    );
  if (requestBody !== undefined)
    add('body', typeOf(requestBody.content['application/json'].schema), requestBody.required);
  add('data', `${data === undefined ? 'undefined' : typeOf(data)}${isOptional ? ' | undefined' : ''}`);
  if (schema.properties?.meta !== undefined) add('isPaged', 'true');
  return members;
}

function typeOf(schema) {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1);
  if (schema.const !== undefined) return quoted(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(quoted).join(' | ');
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' | ');
  if (schema.not !== undefined) return 'never';
  if (schema.type === 'array') return listType(typeOf(schema.items ?? {}));
  if (schema.type === 'object') return objectType(schema);
  return PRIMITIVES[schema.type] ?? 'unknown';
}

function listType(entry) {
  return /^\w+(\[\])*$|^\{/.test(entry) && !entry.includes('} |') ? `${entry}[]` : `(${entry})[]`;
}

function objectType({ properties, required = [], additionalProperties }) {
  if (properties === undefined) {
    const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown';
    return `{ [name: string]: ${values} }`;
  }
  return block(
    Object.entries(properties).map(([name, one]) => member(name, typeOf(one), one.description, required.includes(name)))
  );
}

function member(name, type, about, isRequired = true) {
  const key = /^[\p{L}_$][\w$]*$/u.test(name) ? name : quoted(name);
  return `${comment(about)}${key}${mark(isRequired)}: ${type};`;
}

function comment(about) {
  return about === undefined ? '' : `/** ${about.replaceAll('*/', '*\\/')} */\n`;
}

function block(members) {
  return `{\n${members.join('\n').replace(/^(?=.)/gm, '  ')}\n}`;
}

function mark(isRequired) {
  return isRequired ? '' : '?';
}

function quoted(value) {
  return typeof value === 'string' ? `'${value.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n')}'` : `${value}`;
}
