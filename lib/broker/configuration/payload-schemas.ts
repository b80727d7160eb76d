// JSON Schema is interpreted by typebox, without generating code. Its module takes 100 ms to load, so it is loaded by
// the start of a broker that has such a schema. Everything else implements Standard Schema (https://standardschema.dev),
// whose interface is repeated here: the specification asks libraries to copy it.

import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import type { Decoding, SchemaResult, TopicSchema } from '../../routing/topic-schemas.ts';
import { checkTopicFilter, parseSharedFilter } from '../../topics/topic.ts';
import { checkJsonSchema } from './json-schema-check.ts';

/** The types of a Standard Schema. */
export interface StandardTypes<Output = unknown> {
  /** The type of the values that are checked. */
  readonly input: unknown;
  /** The type of the results. */
  readonly output: Output;
}

/** A schema that implements Standard Schema, version 1, such as those of zod, valibot and arktype. */
export interface StandardSchema<Output = unknown> {
  /** The interface of Standard Schema. */
  readonly '~standard': {
    /** The version of the interface. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Check a value. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** The types of the schema, for the compiler. */
    readonly types?: StandardTypes<Output> | undefined;
  };
}

/** A schema of payloads: a Standard Schema, or an object in the language of JSON Schema, such as one of typebox. */
export type PayloadSchema = StandardSchema | object;

/** A schema with the form in which it gets the payload. */
export interface DecodedSchema {
  /** A Standard Schema, or a JSON Schema. */
  readonly schema: PayloadSchema;
  /** `json` (default): the payload is parsed as JSON. `text`: a string. `bytes`: a Buffer. */
  readonly decode?: Decoding;
}

/** The schemas of payloads, by topic filter. */
export type SchemaTable = Readonly<Record<string, PayloadSchema | DecodedSchema>>;

/** The type of the value of messages that a schema accepts. */
export type SchemaValue<S> = S extends { readonly '~standard': unknown }
  ? S extends StandardSchema<infer Output>
    ? Output
    : unknown
  : S extends { readonly schema: infer Inner }
    ? SchemaValue<Inner>
    : JsonSchemaValue<S>;

/** The type of the values of a JSON Schema, as far as `const`, `enum`, `anyOf`, `type`, `properties`, `required` and `items` say it. */
export type JsonSchemaValue<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Member)[] }
      ? JsonSchemaValue<Member>
      : S extends { readonly type: 'object'; readonly properties: infer Properties }
        ? JsonObjectValue<Properties, S extends { readonly required: readonly (infer Name)[] } ? Name : never>
        : S extends { readonly type: 'array'; readonly items: infer Items }
          ? JsonSchemaValue<Items>[]
          : S extends { readonly type: 'string' }
            ? string
            : S extends { readonly type: 'number' | 'integer' }
              ? number
              : S extends { readonly type: 'boolean' }
                ? boolean
                : S extends { readonly type: 'null' }
                  ? null
                  : unknown;

/** The type of an object with the properties of a JSON Schema, of which these are required. */
export type JsonObjectValue<Properties, Required> = {
  -readonly [Name in keyof Properties as Name extends Required ? Name : never]: JsonSchemaValue<Properties[Name]>;
} & {
  -readonly [Name in keyof Properties as Name extends Required ? never : Name]?: JsonSchemaValue<Properties[Name]>;
} extends infer Value
  ? { [Name in keyof Value]: Value[Name] }
  : never;

/**
 * Read the option `schemas`.
 * @param hasCertificates the broker is Sparkplug Aware: it publishes below $sparkplug what has passed the schemas of births
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, TOPIC_FILTER_INVALID
 */
export function readSchemas(given: unknown, hasCertificates: boolean): readonly TopicSchema[] {
  checkObject(given, 'schemas');
  const ofBroker = hasCertificates ? /^\$(SYS|sparkplug)(\/|$)/ : /^\$SYS(\/|$)/;
  return Object.entries(given as object).map(([filter, value]) => readSchema(filter, value, ofBroker));
}

function readSchema(filter: string, given: unknown, ofBroker: RegExp): TopicSchema {
  const field = `schemas["${filter}"]`;
  const fault = checkTopicFilter(filter) ?? misplaced(filter, ofBroker);
  if (fault !== undefined)
    throw new InvalidInput('TOPIC_FILTER_INVALID', field, 'a topic filter', filter, `${field}: ${fault}`);
  if (!isSchema(given)) throw invalid(field, given);
  if (isStandard(given) || !('schema' in given || 'decode' in given)) return schemaOf(filter, given, 'json', field);
  checkNames(given, ['schema', 'decode'], field);
  const { schema, decode = 'json' } = given as DecodedSchema;
  if (decode !== 'json' && decode !== 'text' && decode !== 'bytes')
    throw new InvalidInput('OPTION_INVALID', `${field}.decode`, '"json", "text" or "bytes"', decode);
  if (!isSchema(schema)) throw invalid(`${field}.schema`, schema);
  return schemaOf(filter, schema, decode, `${field}.schema`);
}

/** Tell why no schema can have a filter. @param ofBroker the topics to which only the broker publishes */
function misplaced(filter: string, ofBroker: RegExp): string | undefined {
  if (parseSharedFilter(filter) !== undefined) return 'write it without a share prefix';
  if (filter.startsWith('$delayed/')) return 'write it without "$delayed/<seconds>/"';
  return ofBroker.test(filter) ? 'schemas do not check messages of the broker' : undefined;
}

/** An object, or a function: the schemas of arktype are functions. */
function isSchema(given: unknown): given is PayloadSchema {
  return typeof given === 'function' || (typeof given === 'object' && given !== null && !Array.isArray(given));
}

/** False for a promise, or a schema of another library, which would accept every payload as a JSON Schema. Objects of any realm are plain. */
function isPlain(schema: object): boolean {
  const prototype = Object.getPrototypeOf(schema);
  return typeof schema !== 'function' && (prototype === null || Object.getPrototypeOf(prototype) === null);
}

function isStandard(given: PayloadSchema): given is StandardSchema {
  return '~standard' in given;
}

function schemaOf(filter: string, schema: PayloadSchema, decode: Decoding, field: string): TopicSchema {
  if (!isStandard(schema)) {
    if (!isPlain(schema)) throw invalid(field, schema);
    checkJsonSchema(schema, field);
    return new JsonSchema(filter, decode, schema);
  }
  const { version, validate } = schema['~standard'] ?? {};
  if (version !== 1 || typeof validate !== 'function') throw invalid(field, schema);
  return { filter, decode, hasPlainIssues: false, validate: (value) => schema['~standard'].validate(value) };
}

function invalid(field: string, given: unknown): InvalidInput {
  return new InvalidInput('OPTION_INVALID', field, 'a Standard Schema of version 1, or a JSON Schema', given);
}

/** Size of the largest payload whose faults are looked for: `Errors` walks through all of it. */
const MAX_EXPLAINED_BYTES = 65_536;

type Validator = typeof import('typebox/schema');

/** A schema in the language of JSON Schema. */
class JsonSchema implements TopicSchema {
  readonly filter: string;
  readonly decode: Decoding;
  readonly hasPlainIssues = true;
  readonly #schema: object;
  #validator: Validator | undefined = undefined;

  constructor(filter: string, decode: Decoding, schema: object) {
    this.filter = filter;
    this.decode = decode;
    this.#schema = schema;
  }

  async load(): Promise<void> {
    this.#validator = await import('typebox/schema');
  }

  validate(value: unknown, bytes: number): SchemaResult {
    const { Check, Errors } = this.#validator as Validator;
    if (Check(this.#schema, value)) return { value };
    if (bytes > MAX_EXPLAINED_BYTES) return { issues: [] };
    const [, errors] = Errors(this.#schema, value);
    // a property that is not allowed has an error, and so has its object, which is left out if there are many
    const isGeneral = errors.some(({ keyword }) => keyword !== 'boolean');
    const issues = errors
      .filter(({ keyword }) => keyword !== 'boolean' || !isGeneral)
      .map(({ keyword, message, instancePath }) => ({
        message: keyword === 'boolean' ? 'is not allowed' : message,
        path: instancePath.split('/').slice(1)
      }));
    return { issues };
  }
}

/** Load what the schemas need, before any message is checked. */
export async function loadSchemas(schemas: readonly TopicSchema[]): Promise<void> {
  for (const schema of schemas) if (schema instanceof JsonSchema) await schema.load();
}
