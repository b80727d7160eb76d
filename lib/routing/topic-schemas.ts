import type { Decider } from '../events/deciders.ts';
import type { Message } from '../packets/message.ts';
import { FilterIndex } from '../topics/trie.ts';

/** The form in which a schema gets the payload: parsed as JSON, as a string, or as a Buffer. */
export type Decoding = 'json' | 'text' | 'bytes';

/** A part of the place of an issue. */
export interface SchemaPathPart {
  /** Name of a property, or index. */
  readonly key: PropertyKey;
}

/** A reason for which a schema refuses a payload. */
export interface SchemaIssue {
  /** Explanation for people. */
  readonly message: string;
  /** The place in the payload: names of properties, and indexes. */
  readonly path?: readonly (PropertyKey | SchemaPathPart)[] | undefined;
}

/** The answer of a schema that accepts a value. */
export interface SchemaSuccess<Output = unknown> {
  /** The value, which the schema may have changed. */
  readonly value: Output;
  /** Undefined: the schema accepts the value. */
  readonly issues?: undefined;
}

/** The answer of a schema that refuses a value. */
export interface SchemaFailure {
  /** The reasons, at least one. */
  readonly issues: readonly SchemaIssue[];
}

/** The answer of a schema. */
export type SchemaResult<Output = unknown> = SchemaSuccess<Output> | SchemaFailure;

/** A schema for the payloads of the topics that a filter matches. */
export interface TopicSchema {
  /** The topic filter. */
  readonly filter: string;
  /** The form in which it gets the payload. */
  readonly decode: Decoding;
  /** True if the messages of issues are fixed texts, which contain no values of payloads. */
  readonly hasPlainIssues: boolean;
  /** Done by the broker in place of a schema: it replaces the message, or refuses it. @internal */
  act?(message: Message): Message | Decider;
  /** Check a decoded payload. @param bytes its size before it was decoded */
  validate(value: unknown, bytes: number): SchemaResult | Promise<SchemaResult>;
}

/** The schemas of a topic without one. */
export const NO_SCHEMAS: readonly TopicSchema[] = [];

/** Finds the schemas of a topic. The result is kept in the route, so topics without a schema cost nothing. */
export class TopicSchemas {
  readonly #index = new FilterIndex<TopicSchema>();
  #order: readonly TopicSchema[];

  constructor(schemas: readonly TopicSchema[]) {
    this.#order = schemas;
    for (const schema of schemas) this.#index.add(schema.filter, schema);
  }

  /** Add a schema after all others. `Routing` must discard its routes afterwards. @returns a function that removes it */
  add(schema: TopicSchema): () => void {
    this.#order = [...this.#order, schema];
    this.#index.add(schema.filter, schema);
    return () => {
      this.#order = this.#order.filter((other) => other !== schema);
      this.#index.delete(schema.filter, schema);
    };
  }

  /** The schemas of a topic name, in the order of the option. Of `$delayed/<seconds>/<topic>`, those of the inner topic. */
  of(topic: string): readonly TopicSchema[] {
    if (this.#order.length === 0) return NO_SCHEMAS;
    const found: TopicSchema[] = [];
    this.#index.match(innerTopic(topic), found);
    if (found.length < 2) return found.length === 0 ? NO_SCHEMAS : found;
    return this.#order.filter((schema) => found.includes(schema));
  }

  /** Tell whether a filter has a schema. */
  has(filter: string): boolean {
    return this.#order.some((schema) => schema.filter === filter);
  }
}

const DELAYED = '$delayed/';

function innerTopic(topic: string): string {
  return topic.startsWith(DELAYED) ? topic.slice(topic.indexOf('/', DELAYED.length) + 1) : topic;
}
