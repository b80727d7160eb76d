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

/** What an operation works with. */
export interface Context {
  readonly broker: Broker;
  readonly streams: StreamsApi;
  /** @throws StreamFault if the mount has no plugins */
  readonly plugins: PluginsApi;
  /** The client wants JSON rather than text. */
  readonly wantsJson: boolean;
  /** The path in front of that of the operation, in the URL of the request. */
  readonly mountedAt: string;
  /** The OpenAPI document for clients that call the interface below a path. */
  document(mountedAt: string): object;
}

/** What a request gives to an operation, checked by its schemas. */
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
  /** Its identifier in the OpenAPI document: `createRule`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Behind the prefix; segments that begin with a colon are parameters. */
  readonly path: string;
  /** What it does, in one sentence without a full stop. */
  readonly descr: string;
  /** What error messages begin with: `Create rule error`. Default: nothing. */
  readonly errorPrefix?: string | ((params: Readonly<Record<string, string>>) => string);
  readonly query?: TObject;
  /** The body, a JSON object. With `Type.Optional`, it may be absent. */
  readonly body?: TSchema;
  /** Integers of the body that floats do not tell apart are bigints, as in rows of streams. */
  readonly hasExactNumbers?: true;
  /** The whole message for a body that is not a JSON object. Default: the prefix and the reason. */
  notJson?(body: string, reason: string, params: Readonly<Record<string, string>>): string;
  /** Checks of a body that come before those of its schema, because their messages are documented. @throws StreamFault */
  first?(body: Readonly<Record<string, unknown>>): void;
  /** Status of success. Default 200. */
  readonly status?: 201;
  /** The schema of a JSON answer, or `text` for a sentence. */
  readonly answer: TSchema | 'text';
  /** The answer is JSON only for clients that want it. */
  readonly isTextByDefault?: true;
  /** What the audit log has of a body, beside the parameters that it records of all operations: names, never values that can be secrets. */
  audited?(body: Readonly<Record<string, unknown>>): Readonly<Record<string, string | undefined>>;
  /** It only reads, although it is no GET: viewers may use it, and the audit log does not have it. */
  readonly isReading?: true;
  readonly example?: Example;
  /** The fault that an error of this operation means. Undefined: what the table of faults says. */
  faultOf?(error: unknown, input: Input): StreamFault | undefined;
  /** Do it. @returns the text, or what is sent as JSON @throws StreamFault, or an error of the broker */
  run(context: Context, input: Input): Awaitable<string | JsonReply>;
}

/** Make a row whose `run` gets its parameters with their types. */
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
