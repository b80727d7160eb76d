import type protobuf from 'protobufjs';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';

/** The package `protobufjs`. */
export type Protobuf = typeof protobuf;
export type MessageType = protobuf.Type;
export type MessageField = protobuf.Field;

/** Maximum number of characters of a .proto file. */
const MAX_CHARACTERS = 1_048_576;
/** Maximum number of files of a schema, including those it imports. */
const MAX_FILES = 1000;

/** @throws BrokerError PACKAGE_MISSING */
export async function loadProtobuf(): Promise<Protobuf> {
  try {
    return (await import('protobufjs')).default;
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const text = 'the format protobuf needs the package protobufjs: npm install protobufjs';
    throw new BrokerError('PACKAGE_MISSING', text, { cause });
  }
}

/** The contents of .proto files by name. */
type Texts = Readonly<Record<string, string>>;

/** @throws InvalidInput OPTION_INVALID, which names the schema */
export function readSchemas(library: Protobuf, schemas: Texts, files: Texts): ReadonlyMap<string, protobuf.Root> {
  if (typeof schemas !== 'object' || schemas === null)
    throw new InvalidInput('OPTION_INVALID', 'schemas', 'an object with the contents of .proto files', schemas);
  const roots = new Map<string, protobuf.Root>();
  for (const [name, text] of Object.entries(schemas)) {
    try {
      if (!/^[^.\s]+$/.test(name)) throw new Error('its name must not be empty and must not contain a dot or blanks');
      roots.set(name, readSchema(library, text, files));
    } catch (cause) {
      const message = `schema "${name}" of the format protobuf: ${(cause as Error).message}`;
      throw new InvalidInput('OPTION_INVALID', `schemas.${name}`, 'the content of a .proto file', undefined, message);
    }
  }
  return roots;
}

function readSchema(library: Protobuf, schema: string, files: Texts): protobuf.Root {
  const root = new library.Root();
  const seen = new Set<string>();
  const parse = (text: unknown): void => {
    if (typeof text !== 'string') throw new Error('the content of a .proto file is needed');
    if (text.length > MAX_CHARACTERS) throw new Error(`a file has more than ${MAX_CHARACTERS} characters`);
    const { imports = [], weakImports = [] } = parsed(library, text, root);
    for (const file of [...imports, ...weakImports]) {
      if (seen.has(file)) continue;
      if (seen.size >= MAX_FILES) throw new Error(`it imports more than ${MAX_FILES} files`);
      seen.add(file);
      const ofGoogle = library.common.get(file);
      if (Object.hasOwn(files, file)) parse(files[file]);
      else if (ofGoogle === null) throw new Error(`it imports "${file}", which is not among the files`);
      else root.addJSON(ofGoogle.nested as Parameters<protobuf.Root['addJSON']>[0]);
    }
  };
  parse(schema);
  root.resolveAll();
  return root;
}

/** Parse a file. The errors of the parser call the end of the text `null`. */
function parsed(library: Protobuf, text: string, root: protobuf.Root): protobuf.IParserResult {
  try {
    return library.parse(text, root, { keepCase: true });
  } catch (cause) {
    const [, line] = /'null'.* \(line (\d+)\)$/.exec((cause as Error).message) ?? [];
    if (line === undefined || /\bnull\b/.test(text)) throw cause;
    throw new Error(`the text ends too early, in line ${line}`, { cause });
  }
}

/** The name of the schema in a SCHEMAID; '' if there is none. */
export function schemaOf(id = ''): string {
  return /^([^.]+)\../.exec(id)?.[1] ?? '';
}

/**
 * The message that a SCHEMAID names.
 * @param names the names of all schemas, for the message
 * @throws InvalidInput STREAM_INVALID
 */
export function typeOf(
  roots: ReadonlyMap<string, protobuf.Root>,
  id: string | undefined,
  { what, names }: { readonly what: string; readonly names: readonly string[] }
): MessageType {
  const schema = schemaOf(id);
  const message = id?.slice(schema.length + 1) ?? '';
  const root = roots.get(schema);
  const type = root === undefined ? undefined : messageOf(root, message);
  if (type !== undefined) return type;
  const known = root === undefined ? names.map((name) => `${name}.MESSAGE`) : namesOf(root, schema);
  const expected = `SCHEMA.MESSAGE; known: ${known.slice(0, 20).join(', ') || 'none'}`;
  const text = `${what}: SCHEMAID (schemaId of a sink) must be ${expected}; got "${id ?? ''}"`;
  throw new InvalidInput('STREAM_INVALID', 'SCHEMAID', expected, id, text);
}

function messageOf(root: protobuf.Root, name: string): MessageType | undefined {
  try {
    return root.lookupType(name);
  } catch {
    return undefined; // the library throws for an unknown message
  }
}

/** The messages of the schema, without nested ones. */
function namesOf(space: protobuf.NamespaceBase, prefix: string): string[] {
  return space.nestedArray.flatMap((each) => {
    if ('fieldsArray' in each) return [`${prefix}.${each.name}`];
    return 'nestedArray' in each ? namesOf(each as protobuf.NamespaceBase, `${prefix}.${each.name}`) : [];
  });
}
