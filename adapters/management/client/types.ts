import type { EarlierOperations } from './earlier.ts';
import type { HostedOperations } from './hosted.ts';
import type { LaterOperations } from './later.ts';

/** The operations of each revision. */
export interface Operations {
  /** The operations of the revision `earlier`. */
  earlier: EarlierOperations;
  /** The operations of the revision `later`. */
  later: LaterOperations;
  /** The operations of the revision `hosted`. */
  hosted: HostedOperations;
}

/** The name of a revision of the interface. */
export type ClientRevision = keyof Operations;

/** The methods of the operations. */
export type ClientMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** The paths that a revision has for a method: `/clients/{clientid}`. */
export type PathOf<R extends ClientRevision, M extends ClientMethod> = keyof Operations[R] extends infer K
  ? K extends `${M} ${infer P}`
    ? P
    : never
  : never;

/** The operation of a revision with a method and a path. */
export type OperationOf<
  R extends ClientRevision,
  M extends ClientMethod,
  P extends string
> = `${M} ${P}` extends keyof Operations[R] ? Operations[R][`${M} ${P}`] : never;

/** The paths of lists with pages. */
export type ListOf<R extends ClientRevision> = {
  [P in PathOf<R, 'GET'>]: OperationOf<R, 'GET', P> extends { isPaged: true } ? P : never;
}[PathOf<R, 'GET'>];

/** Settings of a single request. */
export interface RequestSettings {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

/** The input of an operation, with the settings of the request. */
export type InputOf<R extends ClientRevision, M extends ClientMethod, P extends string> = Omit<
  OperationOf<R, M, P>,
  'data' | 'isPaged'
> &
  RequestSettings;

/** The arguments behind the path. They may be left out if nothing in them is required. */
export type ArgumentsOf<R extends ClientRevision, M extends ClientMethod, P extends string> =
  Record<never, never> extends InputOf<R, M, P> ? [input?: InputOf<R, M, P>] : [input: InputOf<R, M, P>];

/** The data in the answer of an operation: `DataOf<'later', 'GET', '/clients'>`. */
export type DataOf<R extends ClientRevision, M extends ClientMethod, P extends string> =
  OperationOf<R, M, P> extends { data: infer D } ? D : never;

/** A row of a list. */
export type RowOf<R extends ClientRevision, P extends string> =
  DataOf<R, 'GET', P> extends readonly (infer Entry)[] ? Entry : never;

/** The paging information in an answer. */
export interface PageMeta {
  /** Number of the page; the first one is 1. */
  readonly page: number;
  /** Maximum number of rows of the page. */
  readonly limit: number;
  /** Rows of the whole list; -1: not counted, because the query has conditions. */
  readonly count: number;
  /** True if there is a next page. */
  readonly hasnext?: boolean;
  /** For lists below `/x/`: the parameter `cursor` of the next page. */
  readonly cursor?: string;
}

/** A page of a list. */
export interface Page<Data> {
  /** The rows. */
  readonly data: Data;
  /** Undefined: the answer is the whole list. */
  readonly meta: PageMeta | undefined;
}
