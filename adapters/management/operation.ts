import type { Static, TObject, TSchema } from 'typebox';
import type { Awaitable, Broker } from '../../lib/index.ts';
import type { Caller, Fault, Guarded } from '../rest/index.ts';
import type { EventStreams } from './event-stream.ts';
import type { Listing, PageRequest } from './listing.ts';
import type { OptionSource } from './options.ts';
import type { Revision, RevisionName } from './revisions.ts';
import type { Walks } from './walks.ts';

/** The names of the parameters of a path: `clientid` for `/clients/:clientid`. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** What an operation works with. */
export interface Context {
  readonly broker: Broker;
  readonly revision: Revision;
  /** The operations that the mount offers, in the order of the index. */
  readonly operations: readonly Operation[];
  /** With `errors: 'original'`: what does not exist is no error where the original products do not see one. */
  readonly isOriginal: boolean;
  /** Whether the mount has operations for applications (option `appOperations`). */
  readonly appOperations: boolean;
  /** The streams of events of the mount. */
  readonly streams: EventStreams;
  /** The part of the list that is asked for. */
  readonly page: PageRequest;
  /** The places where pages of the lists of the mount have ended. */
  readonly walks: Walks;
  /** Who has sent the request. */
  readonly caller: Caller;
  /** Whether a hash is that of the secret or password that the request has. @throws InvalidInput if it is no hash */
  isSecret(hash: string): Promise<boolean>;
  /** The path in front of that of the operation, in the URL of the request. */
  readonly mountedAt: string;
  /** The body as it was sent, for numbers that `JSON.parse` does not keep; undefined if the server of the host app has parsed it. */
  readonly text: string | undefined;
  /** Where the app has an option from; see `ManagementOptions`. */
  readonly optionSource: OptionSource | undefined;
}

/** What a request gives to an operation, checked by its schemas. */
export interface Input<P extends string = string, Q = Readonly<Record<string, unknown>>, B = unknown> {
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  readonly query: Q;
  readonly body: B;
}

/** What the original products answer to a fault, with status 200. */
export interface OriginalAnswer {
  /** Absent: the body has only a message. */
  readonly code?: number;
  readonly message: string;
}

/**
 * A request that succeeds with the broker of `test/support/management-fixture.ts`, and its answer. A test sends it in each revision that has
 * the operation.
 */
export interface Example<P extends string = string> {
  /** Values of the parameters of the path, as they are before they are encoded. */
  readonly params?: Readonly<Partial<Record<P, string>>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  /** The data of the answer, valid by the schema `data`. Of a list, its first entries are enough; of counters and the like, a few. */
  readonly data?: unknown;
}

/**
 * An example that is the same in all revisions of its row, or a function that makes the one of a revision where names differ:
 * `({ clientIdName }) => ({ body: { [clientIdName]: 'sensor-1', topic: 'a' } })`.
 */
export type ExampleOf<P extends string = string> = Example<P> | ((revision: Revision) => Example<P>);

/** Names of what a request changes. The audit log has the first 20 of a list, and the first 256 characters of each. */
export type AuditedNames = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** An operation of the interface. The index, the router, the checks, the OpenAPI document and the tests read the same rows. */
export interface Operation extends Guarded {
  /** As the index lists it: `kickout_client`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Behind the prefix; segments that begin with a colon are parameters. */
  readonly path: string;
  /** What it does, as the index says it. */
  readonly descr: string;
  /** The revisions that have it. Default: all. */
  readonly in?: readonly RevisionName[];
  /** The parameters of the query, beside `_page` and `_limit`. */
  readonly query?: TObject;
  /** As `originalBody`, for the query. */
  readonly originalQuery?: TObject;
  readonly body?: TSchema;
  /** The schema of the body with `errors: 'original'`, where the original products accept values that they ignore. Default: `body`. */
  readonly originalBody?: TSchema;
  /** Greatest size of a body. Default, and if that is greater: the option `maxBodyBytes`. */
  readonly maxBodyBytes?: number;
  /** The data of the answer; optional: some answers have none. Default: none, or a list of objects if the list has pages. */
  readonly data?: TSchema;
  /** The record whose other fields a body may have too, as a client sends back what it was shown; they are ignored. Default: `data`. */
  readonly shown?: TSchema;
  /** Fields of that record with the value of a parameter of the path which has another name: `{ app_id: 'appid' }`. */
  readonly named?: Readonly<Record<string, string>>;
  /** Shown in the OpenAPI document and executed by a test. */
  readonly example?: ExampleOf;
  /** It shows or changes applications, and can be switched off for a mount (option `appOperations`). */
  readonly isForApplications?: true;
  /** Viewers may not use it, even if it only reads: the answer has hashes of passwords. */
  readonly isForAdministrators?: true;
  /**
   * Whether a viewer may use it, although it is no GET. Its wrong passwords (faults `unauthorized`, `wrongOldPassword`) count as failed logins.
   * Absent: no.
   */
  isForViewer?(caller: Caller, params: Readonly<Record<string, string>>): boolean;
  /** A list with pages, and the default of `_limit`; `max`: that of the mount (option `maxRowLimit`). */
  readonly paged?: 'max' | number;
  /** A list with pages that also takes the parameter `cursor`. */
  readonly hasCursor?: true;
  /** Requests may come at a high rate: similar ones in a row are one entry of the audit log. */
  readonly isFrequent?: true;
  /** The answer is a stream of server-sent events (`EventStream`), which does not end by itself. */
  readonly isStream?: true;
  /** The answer is not an envelope but a `Download` of this type; `data` is its schema if it is JSON. */
  readonly contentType?: string;
  /**
   * What the audit log has of a body, beside the parameters that it records of all operations: names of what is changed, never values that can
   * be secret.
   */
  audited?(input: Pick<Input, 'query' | 'body'>): AuditedNames;
  /** The fault that an error of this operation means, also one of its input. Default, and if it is undefined: what the table of codes says. */
  faultOf?(error: unknown): Fault | undefined;
  /** What the original products answer to a fault of this operation. Default: what the table of codes says. */
  originalAnswer?(fault: Fault, revision: Revision): OriginalAnswer | undefined;
  /**
   * Do it. It returns the data of the answer; undefined: the answer has only a code.
   * @throws Fault, or an error of the broker that `FAULTS` translates
   */
  run(context: Context, input: Input): Awaitable<unknown | Listing<unknown>>;
}

/** The schemas of the requests of an operation. @param isOriginal with `errors: 'original'` */
export function requestOf(row: Operation, isOriginal: boolean): Pick<Operation, 'query' | 'body'> {
  const { query, body, originalQuery = query, originalBody = body } = row;
  return isOriginal ? { query: originalQuery, body: originalBody } : { query, body };
}

/** Make a row whose `run` gets its parameters with their types. */
export function operation<const P extends string, Q extends TObject, B extends TSchema>(
  row: Omit<Operation, 'path' | 'query' | 'body' | 'example' | 'audited' | 'run'> & {
    readonly path: P;
    readonly example?: ExampleOf<ParamNames<P>>;
    readonly query?: Q;
    readonly body?: B;
    audited?(input: Pick<Input<P, Static<Q>, Static<B>>, 'query' | 'body'>): AuditedNames;
    run(context: Context, input: Input<P, Static<Q>, Static<B>>): Awaitable<unknown>;
  }
): Operation {
  return row as unknown as Operation;
}
