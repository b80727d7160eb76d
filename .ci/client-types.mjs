// The TypeScript declarations of the operations of an OpenAPI document, for the typed clients.
//
// Types that the compiler infers from the rows would need no generator. Tried with 20 rows (clients and connections in the cluster and on a node,
// publish, a batch, the stream of events), compiled without skipLibCheck, in TypeScript 5.9 and 5.4: both compile, but the check of an app that sends six
// requests took 30 to 41 s and 25 to 32 s instead of 2.8 s (3,600,000 and 4,900,000 instantiations instead of 5,000; 620 MB instead of 83), and
// that of the rows alone 17 s. The inferred fields have no documentation in an editor, because descriptions are strings of schemas and not comments.

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const PRIMITIVES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };

/** Write the declarations. @param name of the interface with the operations */
export function typesOf(document, name) {
  const { Fault: _, Meta: __, ...records } = document.components.schemas;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => answerOf(methods[method]) !== undefined).map((method) =>
      member(`${method.toUpperCase()} ${path}`, block(operationType(methods[method])), methods[method].summary)
    )
  );
  return [
    '// Written from the operations by `node .ci/write-types`, and not in git.',
    ...Object.entries(records).map(([title, schema]) => `export interface ${title} ${typeOf(schema)}`),
    `/** ${document.info.title}: its operations, and what they get and give. */\nexport interface ${name} ${block(operations)}`,
    ''
  ].join('\n\n');
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
  if (params.length > 0) members.push(`params: ${typeOf(properties(params))};`);
  if (query.length > 0) members.push(`query${mark(query.some((one) => one.required))}: ${typeOf(properties(query))};`);
  if (requestBody !== undefined)
    members.push(`body${mark(requestBody.required)}: ${typeOf(requestBody.content['application/json'].schema)};`);
  members.push(`data: ${data === undefined ? 'undefined' : typeOf(data)}${isOptional ? ' | undefined' : ''};`);
  if (schema.properties?.meta !== undefined) members.push('isPaged: true;');
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
  const comment = about === undefined ? '' : `/** ${about.replaceAll('*/', '*\\/')} */\n`;
  const key = /^[\p{L}_$][\w$]*$/u.test(name) ? name : quoted(name);
  return `${comment}${key}${mark(isRequired)}: ${type};`;
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
