import type { StreamFormatType } from '../../../lib/adapter.ts';
import { InvalidInput, StateError } from '../../../lib/index.ts';
import { MessageReader } from './reader.ts';
import { loadProtobuf, type MessageType, type Protobuf, readSchemas, schemaOf, typeOf } from './schemas.ts';
import { MessageWriter } from './writer.ts';

/** Options of `protobufFormat`. */
export interface ProtobufOptions {
  /**
   * The contents of .proto files by the name of the schema, which is the part of SCHEMAID before the first dot. Default: none; others can be
   * created at run time.
   */
  readonly schemas?: Readonly<Record<string, string>>;
  /**
   * The contents of .proto files that schemas import, by the path in `import`. Those of Google (`google/protobuf/...`)
   * are built in.
   */
  readonly files?: Readonly<Record<string, string>>;
  /** Maximum size of a payload in bytes. Default 1048576. */
  readonly maxBytes?: number;
}

type Roots = ReturnType<typeof readSchemas>;

const DEFAULT_MAX_BYTES = 1_048_576;
const MAX_BYTES = 268_435_456;

/**
 * The format `protobuf`: `createBroker({ streams: { formats: [await protobufFormat({ schemas: { book: text } })] } })`,
 * then `FORMAT="protobuf", SCHEMAID="book.Book"` of a stream, and `"format": "protobuf", "schemaId": "book.Book"` of a
 * sink. The name of the message may begin with its package: `book.library.Book` is `Book` of the package `library`.
 *
 * Integers and enumerations are integers, bytes are bytes, messages and maps are structs. Fields have their names of
 * the schema. A field that is not in the payload has its default; a message, an `optional` field of proto3 and a member
 * of a `oneof` is null.
 * @throws BrokerError PACKAGE_MISSING; InvalidInput OPTION_INVALID, which names the schema
 */
export async function protobufFormat({
  schemas = {},
  files = {},
  maxBytes = DEFAULT_MAX_BYTES
}: ProtobufOptions = {}): Promise<StreamFormatType> {
  if (!(Number.isInteger(maxBytes) && maxBytes >= 1 && maxBytes <= MAX_BYTES))
    throw new InvalidInput('OPTION_INVALID', 'maxBytes', `an integer from 1 to ${MAX_BYTES}`, maxBytes);
  // loaded with the first schema
  let library: Protobuf | undefined;
  const rootsOf = async (texts: Readonly<Record<string, string>>) =>
    readSchemas((library ??= await loadProtobuf()), texts, files);
  const roots: Roots = Object.keys(schemas).length === 0 ? new Map() : await rootsOf(schemas);
  const parsed = new Map<string, { readonly text: string; readonly roots: Roots }>();
  /** The schemas of the options, with one that was created at run time. */
  const rootsWith = (name: string, text: string): Roots => {
    let known = parsed.get(name);
    if (known?.text !== text) {
      known = { text, roots: new Map([...roots, ...readSchemas(library as Protobuf, { [name]: text }, files)]) };
      parsed.set(name, known);
    }
    return known.roots;
  };
  return {
    name: 'protobuf',
    about: 'Messages of Protocol Buffers: SCHEMAID="SCHEMA.MESSAGE".',
    checkSchema: async (name, text) => {
      if (roots.has(name))
        throw new StateError(
          'STREAM_OF_APP',
          `schema ${name} is defined in the options of the format; change it there`
        );
      await rootsOf({ [name]: text });
    },
    make({ what, options, needed, schemas: own = {} }) {
      const id = options?.SCHEMAID;
      const name = schemaOf(id);
      const isOwn = library !== undefined && Object.hasOwn(own, name) && !roots.has(name);
      const names = [...new Set([...roots.keys(), ...Object.keys(own)])];
      const type: MessageType = typeOf(isOwn ? rootsWith(name, own[name]) : roots, id, { what, names });
      const reader = new MessageReader(library as Protobuf, type, { needed, maxBytes });
      const writer = new MessageWriter(type);
      return {
        name: 'protobuf',
        decode: (payload) => reader.read(payload),
        encode: (value) => writer.write(value)
      };
    }
  };
}
