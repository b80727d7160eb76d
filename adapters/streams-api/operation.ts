import type { Static, TObject, TSchema } from 'typebox';
import type { Awaitable, Broker, StreamsApi } from '../../lib/index.ts';
import type { Guarded } from '../rest/index.ts';
import type { PluginsApi } from '../streams-plugins/index.ts';
import type { StreamFault } from './faults.ts';
import type { JsonReply } from './reply.ts';

/** The names of the parameters of a path: `id` for `/rules/:id`. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never;

/** The context of a call of an operation. */
export interface Context {
  readonly broker: Broker;
  readonly streams: StreamsApi;
  /** @throws StreamFault if the mount has no plugins */
  readonly plugins: PluginsApi;
  /** True if the client prefers JSON to text. */
  readonly wantsJson: boolean;
  /** The path in front of the path of the operation, in the URL of the request. */
  readonly mountedAt: string;
  /** The OpenAPI document for clients that call the interface below a path. */
  document(mountedAt: string): object;
}

/** The values of a request, checked against the schemas of the operation. */
export interface Input<P extends string = string, Q = Readonly<Record<string, unknown>>, B = unknown> {
  readonly params: Readonly<Record<ParamNames<P>, string>>;
  readonly query: Q;
  readonly body: B;
}

/** A request that succeeds in the test of the rows, and its answer. */
interface Example {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | boolean>>;
  readonly body?: unknown;
  /** The text, or the value of the JSON. */
  readonly answer?: unknown;
}

/** An operation of the interface. The router, the checks, the OpenAPI document and the tests read the same rows. */
export interface Operation extends Guarded {
  /** The identifier in the OpenAPI document: `createRule`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path behind the prefix; segments that begin with a colon are parameters. */
  readonly path: string;
  /** The purpose, in one sentence without a full stop. */
  readonly descr: string;
  /** The prefix of error messages: `Create rule error`. Default: none. */
  readonly errorPrefix?: string | ((params: Readonly<Record<string, string>>) => string);
  readonly query?: TObject;
  /** The body, a JSON object. With `Type.Optional`, it may be absent. */
  readonly body?: TSchema;
  /** Set if integers of the body beyond the precision of floats are bigints, as in rows of streams. */
  readonly hasExactNumbers?: true;
  /** The whole message for a body that is not a JSON object. Default: the prefix and the reason. */
  notJson?(body: string, reason: string, params: Readonly<Record<string, string>>): string;
  /**
   * Checks of a body that run before those of its schema, because their messages are documented.
   * @throws StreamFault
   */
  first?(body: Readonly<Record<string, unknown>>): void;
  /** Status of success. Default 200. */
  readonly status?: 201;
  /** The schema of a JSON answer, or `text` for a sentence. */
  readonly answer: TSchema | 'text';
  /** Set if the answer is JSON only for clients that ask for it. */
  readonly isTextByDefault?: true;
  /**
   * The entries of the audit log for a body, in addition to the parameters recorded for all operations: names, never
   * values that can be secret.
   */
  audited?(body: Readonly<Record<string, unknown>>): Readonly<Record<string, string | undefined>>;
  /** Set if the operation only reads although it is not a GET: viewers may use it, and the audit log leaves it out. */
  readonly isReading?: true;
  readonly example?: Example;
  /** The fault for an error of this operation. Undefined: the fault in the table of faults. */
  faultOf?(error: unknown, input: Input): StreamFault | undefined;
  /**
   * Execute the operation.
   * @returns the text, or a value that is sent as JSON
   * @throws StreamFault, or an error of the broker
   */
  run(context: Context, input: Input): Awaitable<string | JsonReply>;
}

/** Define an operation whose `run` gets typed parameters. */
export function operation<const P extends string, Q extends TObject, B extends TSchema>(
  row: Omit<Operation, 'path' | 'query' | 'body' | 'run' | 'faultOf'> & {
    readonly path: P;
    readonly query?: Q;
    readonly body?: B;
    faultOf?(error: unknown, input: Input<P, Static<Q>, Static<B>>): StreamFault | undefined;
    run(context: Context, input: Input<P, Static<Q>, Static<B>>): Awaitable<string | JsonReply>;
  }
): Operation {
  return row as unknown as Operation;
}
