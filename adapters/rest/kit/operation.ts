// `operation` returns its argument, so a row keeps what was written in it as literal types: name, path, schemas. The
// types of `run` follow from them; those of clients are written (see .ci/client-types.mjs). The columns are those of all
// interfaces; each uses some.

import type { Static, TObject, TSchema } from 'typebox';
import type { Awaitable, Broker } from '../../../lib/index.ts';
import type { Call } from '../call.ts';
import type { Caller } from '../credentials.ts';
import type { OpenApiDocument } from '../document.ts';
import type { Fault } from '../fault.ts';
import type { Guarded } from '../guard.ts';

/** The names of the parameters of a path: `clientid` for `/clients/:clientid`. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** The part of a list that is requested. */
export interface PageRequest {
  /** The page number, from 1. */
  readonly number: number;
  readonly limit: number;
  /** Number of rows on the previous pages. */
  readonly skip: number;
  /** The end of the previous page; undefined: this page begins after `skip` rows. */
  readonly cursor?: string | undefined;
  /** True if the request has a paging parameter. */
  readonly isGiven?: boolean;
}

/** The context of a call in every interface. */
export interface CallContext {
  readonly broker: Broker;
  readonly call: Call;
  /** The sender of the request. */
  readonly caller: Caller;
  /** True if the sender may not see payloads of messages: a viewer, with `viewerPayloads: false`. */
  readonly hidesPayloads: boolean;
  /** The part of the list that is requested. */
  readonly page: PageRequest;
  /**
   * The body as sent, for numbers that `JSON.parse` does not preserve; undefined if the server of the host app has
   * parsed it.
   */
  readonly text: string | undefined;
  /** The OpenAPI document for the URL of the request. */
  document(): OpenApiDocument;
}

/** The context of a call. @typeParam M the members that only one interface has */
export type Context<M = unknown> = CallContext & M;

/** The values of a request, checked against the schemas of the operation. */
export interface Input<P extends string = string, Q = Readonly<Record<string, unknown>>, B = unknown> {
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  readonly query: Q;
  readonly body: B;
}

/**
 * A request that succeeds in a test of the rows, and its answer. Shown in the OpenAPI document.
 */
export interface Example<P extends string = string> {
  /** Values of the path parameters, not encoded. */
  readonly params?: Readonly<Partial<Record<P, string>>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  /**
   * The data of the answer, valid for the schema `data`, or its text. For a list, its first entries are enough; for
   * counters, a selection.
   */
  readonly data?: unknown;
}

/** The revision of an interface that has several. */
export type RevisionOf<M> = M extends { readonly revision: infer R } ? R : undefined;

type RevisionNameOf<M> = M extends { readonly revision: { readonly name: infer N extends string } } ? N : string;

/**
 * An example that is the same in all revisions of its row, or a function of the revision where names differ:
 * `({ clientIdName }) => ({ body: { [clientIdName]: 'sensor-1', topic: 'a' } })`.
 */
type ExampleOf<M = unknown, P extends string = string> = Example<P> | ((revision: RevisionOf<M>) => Example<P>);

/** The answer of the original products to a fault, with status 200. */
export interface OriginalAnswer {
  /** Undefined: the body contains only a message. */
  readonly code?: number;
  readonly message: string;
}

/**
 * Names of the objects that a request changes. The audit log has the first 20 of a list, and the first 256 characters
 * of each.
 */
export type AuditedNames = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The methods of operations. */
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The columns of a row that keep their literal types. */
export interface RowTypes<N = string, M = Method, P = string, Q = TObject | undefined, B = TSchema | undefined, D = B> {
  readonly name: N;
  readonly method: M;
  readonly path: P;
  readonly query: Q;
  readonly body: B;
  readonly data: D;
}

/** The type of the values of a schema; undefined: there is none. */
type ValueOf<S> = S extends TSchema ? Static<S> : undefined;
type InputOf<T extends RowTypes> = Input<T['path'], ValueOf<T['query']>, ValueOf<T['body']>>;

/**
 * An operation of an interface. The router, the checks, the audit log, the OpenAPI document, the clients and the tests
 * read the same rows.
 * @typeParam M the members that only this interface has in the context
 */
export interface Operation<M = unknown, T extends RowTypes = RowTypes> extends Guarded {
  /** The name, also in the index and in the OpenAPI document: `kickout_client`. */
  readonly name: T['name'];
  readonly method: T['method'];
  /** The path behind the prefix; segments that begin with a colon are parameters. */
  readonly path: T['path'];
  /** The purpose, in one sentence without a full stop. */
  readonly descr: string;
  /** The name and the purpose of the form for one node, if there is one, and its place. Only the management interface has such forms. */
  readonly onNode?: readonly [name: string, descr: string, place?: 'before' | 'after'];
  /** The form for all nodes, whose answer is a list of nodes with the answer of this operation in a field. Only in the management interface. */
  readonly ofAllNodes?: Pick<Operation, 'name' | 'descr' | 'ctl'> & { readonly field: string };
  /**
   * The action of `embermq ctl` that sends the request; or actions, each with the columns of its table on a terminal. Words in capitals are
   * arguments; in brackets, optional ones. Arguments are the parameters of the path in their order, unless they name another one, as in
   * `subs [ID=clientid]`; `FILE` is a JSON file with the body. Flags name the parameter that they set, if it has another name: `--client=clientid`.
   * Words such as `enabled=true` are constant values: true and false become booleans. They fill parameters of the path, too.
   */
  readonly ctl?: string | Readonly<Record<string, string>> | undefined;
  /** The revisions that have it. Default: all. */
  readonly in?: readonly RevisionNameOf<M>[];
  /** The parameters of the query, in addition to those of pages. */
  readonly query?: T['query'];
  /** The schema of the query with `errors: 'original'`; see `originalBody`. */
  readonly originalQuery?: TObject;
  /** The schema of the body. With `Type.Optional`, it may be absent. */
  readonly body?: T['body'];
  /**
   * The schema of the body with `errors: 'original'`, if the original products accept values that they ignore. Default:
   * `body`.
   */
  readonly originalBody?: TSchema;
  /** Maximum size of a body. Default, and minimum: the option `maxBodyBytes`. */
  readonly maxBodyBytes?: number;
  /** Set if integers of the body beyond the precision of floats are bigints, as in rows of streams. */
  readonly hasExactNumbers?: true;
  /** The whole message for a body that is not a JSON object. Default: the prefix of errors and the reason. */
  notJson?(body: string, reason: string, params: Readonly<Record<string, string>>): string;
  /**
   * Checks of a body that run before those of its schema, because their messages are documented.
   * @throws Fault
   */
  first?(body: Readonly<Record<string, unknown>>): void;
  /**
   * The schema of the data of the answer; some answers have no data. Default: none, or a list of objects if the list
   * has pages.
   */
  readonly data?: T['data'];
  /**
   * The record whose other fields a body may contain, because clients send records back as they received them; they are
   * ignored. Default: `data`.
   */
  readonly shown?: TSchema;
  /** Fields of that record that repeat a path parameter under another name: `{ app_id: 'appid' }`. */
  readonly named?: Readonly<Record<string, string>>;
  /** Shown in the OpenAPI document and executed by a test. */
  readonly example?: ExampleOf<M, ParamNames<T['path']>>;
  /** Set for operations on applications, which can be switched off for a mount (option `appOperations`). */
  readonly isForApplications?: true;
  /** Set if viewers may not use the operation although it only reads, because the answer has password hashes. */
  readonly isForAdministrators?: true;
  /**
   * Set if the answer is about payloads of messages: those who may not see payloads may not use the operation. Others, whose answers may
   * have payloads beside other fields, leave them out (`hidesPayloads` of the context).
   */
  readonly showsPayloads?: true;
  /** Set if the operation only reads although it is not a GET: viewers may use it, and the audit log leaves it out. */
  readonly isReading?: true;
  /**
   * Check whether a viewer may use the operation although it changes something. Wrong passwords (faults `unauthorized`,
   * `wrongOldPassword`) count as failed logins. Default: no.
   */
  isForViewer?(caller: Caller, params: Readonly<Record<string, string>>): boolean;
  /** Set for lists with pages: the default of `_limit`; `max`: that of the mount (option `maxRowLimit`). */
  readonly paged?: 'max' | number;
  /** Set for lists with pages that also take the parameter `cursor`. */
  readonly hasCursor?: true;
  /** Set if requests may come at a high rate: similar consecutive ones become one entry of the audit log. */
  readonly isFrequent?: true;
  /** Set if the answer is a stream of server-sent events (`ServerSentEvents` of the management interface), which does not end on its own. */
  readonly isStream?: true;
  /**
   * The content type, if the answer is not in the usual form of the interface. With `data`, which is its schema, it is
   * JSON, or becomes JSON for clients that ask for it. In the interface of streams it is only shown in the document.
   */
  readonly contentType?: string;
  /** The name under which browsers save the answer. Default: they show it. */
  readonly filename?: string;
  /** Status of success. Default 200. */
  readonly status?: 201;
  /** Status of faults of the object in the body, instead of 400. */
  readonly refusal?: 422;
  /** The prefix of error messages in text: `Create rule error`. Default: none. */
  readonly errorPrefix?: string | ((params: Readonly<Record<string, string>>) => string);
  /**
   * The entries of the audit log for a body, in addition to the parameters recorded for all operations: names of
   * changed objects, never values that can be secret.
   */
  audited?(input: Pick<InputOf<T>, 'query' | 'body'>): AuditedNames;
  /**
   * The fault for an error of this operation or of its input. Default, and if undefined: the fault in the table of
   * the interface.
   * @param input query and body are empty objects as long as they are not read
   */
  faultOf?(error: unknown, input: InputOf<T>): Fault | undefined;
  /** The answer of the original products to a fault of this operation. Default: the answer in the table of codes. */
  originalAnswer?(fault: Fault, revision: RevisionOf<M>): OriginalAnswer | undefined;
  /**
   * Execute the operation. Returns the data of the answer; undefined: the answer has no data.
   * @throws Fault, or an error of the broker that the table of the interface translates
   */
  run(context: Context<M>, input: InputOf<T>): Awaitable<unknown>;
}

/**
 * Defines an operation: `run` gets typed parameters, and the row keeps its literal types.
 * @typeParam U the columns that have no effect in the interface
 */
type DefineOperation<M, U extends keyof Operation = never> = <
  const Name extends string,
  const Verb extends Method,
  const Path extends string,
  Query extends RowTypes['query'] = undefined,
  Body extends RowTypes['body'] = undefined,
  Data extends RowTypes['data'] = undefined
>(
  row: Operation<M, RowTypes<Name, Verb, Path, Query, Body, Data>> & { readonly [Column in U]?: undefined }
) => Operation<M, RowTypes<Name, Verb, Path, Query, Body, Data>>;

/** Make the function that defines the operations of an interface; see `DefineOperation`. */
export function operation<M, U extends keyof Operation = never>(): DefineOperation<M, U> {
  return (row) => row;
}

/** The example of a row in a revision. */
export function exampleOf<M>({ example }: Operation<M>, revision: RevisionOf<M>): Example | undefined {
  return typeof example === 'function' ? example(revision) : example;
}

/** Facts about a request while it is handled. */
export interface RestRequest<M = unknown> {
  readonly call: Call;
  /** Undefined: no operation has the path and method. */
  readonly row: Operation<M> | undefined;
  readonly params: Readonly<Record<string, string>>;
  caller?: Caller;
  /** Set when the input has been read; its body is not checked. */
  given?: Pick<Input, 'query' | 'body'>;
  /** Set when the input has been checked. */
  input?: Input;
}
