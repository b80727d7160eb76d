import type { StreamsOperations } from './operations.ts';

/** The methods of the operations. */
export type StreamsMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that a method has: `/rules/{id}`. */
export type StreamsPath<M extends StreamsMethod> = keyof StreamsOperations extends infer K
  ? K extends `${M} ${infer P}`
    ? P
    : never
  : never;

/** The operation with a method and a path. */
export type StreamsOperation<M extends StreamsMethod, P extends string> = `${M} ${P}` extends keyof StreamsOperations
  ? StreamsOperations[`${M} ${P}`]
  : never;

/** Settings of a single request. */
export interface StreamsRequestSettings {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

/** The input of an operation, with the settings of the request. */
export type StreamsInput<M extends StreamsMethod, P extends string> = Omit<StreamsOperation<M, P>, 'data'> &
  StreamsRequestSettings;

/** The arguments behind the path. They may be left out if nothing in them is required. */
export type StreamsArguments<M extends StreamsMethod, P extends string> =
  Record<never, never> extends StreamsInput<M, P> ? [input?: StreamsInput<M, P>] : [input: StreamsInput<M, P>];

/** The answer of an operation: `StreamsData<'GET', '/rules'>`. Commands answer a sentence. */
export type StreamsData<M extends StreamsMethod, P extends string> =
  StreamsOperation<M, P> extends { data: infer D } ? D : never;
