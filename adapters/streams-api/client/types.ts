import type { StreamsOperations } from './operations.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that a method has: `/rules/{id}`. */
export type StreamsPath<M extends Method> = keyof StreamsOperations extends infer K
  ? K extends `${M} ${infer P}`
    ? P
    : never
  : never;

type Row<M extends Method, P extends string> = `${M} ${P}` extends keyof StreamsOperations
  ? StreamsOperations[`${M} ${P}`]
  : never;

/** Settings of a single request. */
export interface StreamsRequestSettings {
  readonly signal?: AbortSignal | undefined;
  /** Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

/** What an operation takes, and the settings of the request. */
export type StreamsInput<M extends Method, P extends string> = Omit<Row<M, P>, 'data'> & StreamsRequestSettings;

/** The arguments behind the path. They may be left out if nothing in them is required. */
export type StreamsArguments<M extends Method, P extends string> =
  Record<never, never> extends StreamsInput<M, P> ? [input?: StreamsInput<M, P>] : [input: StreamsInput<M, P>];

/** What an operation answers: `StreamsData<'GET', '/rules'>`. Commands answer a sentence. */
export type StreamsData<M extends Method, P extends string> = Row<M, P> extends { data: infer D } ? D : never;
