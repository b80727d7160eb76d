import type { Json } from '../document.ts';

/**
 * The documentation of a schema where it differs from the check of requests: its keyword `documented`. A property that
 * is accepted only for tolerance is documented in no revision.
 */
export interface Documented {
  /** The revisions that have the property. Default: all. */
  readonly in?: readonly string[];
  /** Documented as required: the operation itself checks that the property is present. */
  readonly isRequired?: true;
  /** The schema to document instead: that of the entries of a batch, which are checked one by one. */
  readonly as?: object;
}

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE = ['items', 'additionalProperties', 'not'];
const LISTS = ['anyOf', 'oneOf', 'allOf'];

/**
 * The schemas of a document, derived from those of the rows. A schema with a title becomes a component of the document,
 * to which others refer.
 */
export class DocumentSchemas {
  readonly #revision: string;
  readonly #components = new Map<string, { readonly source: object; readonly schema: Json }>();

  constructor(revision: string) {
    this.#revision = revision;
  }

  /** The schemas with a title, in alphabetical order. */
  get components(): Record<string, Json> {
    const entries = [...this.#components].map(([title, { schema }]) => [title, schema] as const);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** @throws Error if two schemas have the same title */
  of(schema: object): Json {
    const { as } = documented(schema);
    if (as !== undefined) return this.of(as);
    const { title } = schema as { readonly title?: unknown };
    if (typeof title !== 'string') return this.#made(schema);
    const known = this.#components.get(title);
    if (known !== undefined && known.source !== schema) throw new Error(`two schemas have the title "${title}"`);
    if (known === undefined) this.#components.set(title, { source: schema, schema: this.#made(schema) });
    return { $ref: `#/components/schemas/${title}` };
  }

  /** The properties of an object in the revision. */
  properties(schema: object): Record<string, object> {
    const all = (schema as { readonly properties?: Record<string, object> }).properties ?? {};
    return Object.fromEntries(
      Object.entries(all).filter(([, one]) => documented(one).in?.includes(this.#revision) ?? true)
    );
  }

  /** The required ones of some properties. */
  required(schema: object, properties: Readonly<Record<string, object>>): string[] {
    const checked = (schema as { readonly required?: readonly string[] }).required ?? [];
    return Object.entries(properties)
      .filter(([name, one]) => checked.includes(name) || documented(one).isRequired === true)
      .map(([name]) => name);
  }

  #made(schema: object): Json {
    const made: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'title' || keyword === 'documented' || keyword === 'required') continue;
      if (keyword === 'properties') Object.assign(made, this.#object(schema));
      // recordOf
      else if (keyword === 'patternProperties') made.additionalProperties = this.of(Object.values(value)[0] as object);
      else if (ONE.includes(keyword)) made[keyword] = typeof value === 'object' ? this.of(value as object) : value;
      else if (LISTS.includes(keyword)) made[keyword] = (value as object[]).map((one) => this.of(one));
      else made[keyword] = value;
    }
    return made;
  }

  #object(schema: object): Json {
    const properties = this.properties(schema);
    const required = this.required(schema, properties);
    return {
      ...(required.length === 0 ? {} : { required }),
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, this.of(one)]))
    };
  }
}

function documented(schema: object): Documented {
  return (schema as { readonly documented?: Documented }).documented ?? {};
}
