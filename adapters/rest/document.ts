/** A JSON value of an OpenAPI document. */
export type Json = Readonly<Record<string, unknown>>;

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
  /** The version of OpenAPI. */
  readonly openapi: string;
  /** Facts about the interface. */
  readonly info: {
    /** The title. */
    readonly title: string;
    /** The version. */
    readonly version: string;
    /** The description, in Markdown. */
    readonly description: string;
  };
  /** The prefixes of the paths. */
  readonly servers: readonly {
    /** The prefix. */
    readonly url: string;
  }[];
  /** The accepted kinds of credentials; empty: none are needed. */
  readonly security: readonly Json[];
  /** The operations by path and method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  /** Schemas, answers and kinds of credentials, by kind and name. */
  readonly components: Readonly<Record<string, Readonly<Record<string, Json>>>>;
}
