import type { Awaitable, Broker } from '../../../lib/index.ts';

/** The kinds of rows that are counted for all tabs together. */
export type RowsName = 'clients' | 'topics';

/** State of all watches of a console. */
export interface SharedWatches {
  /** Numbers of rows that are in view: of clients, and of topics and topic filters. */
  readonly rows: Record<RowsName, number>;
  /** The readings of the overview, which its watches share. */
  sampler?: SharedSampler | undefined;
}

/** Reads the state of the broker for several watches. */
export interface SharedSampler {
  watches: number;
  read(): object;
  close(): void;
}

/** Dependencies of a watch. */
export interface WatchContext {
  readonly broker: Broker;
  /** True if the person may not see payloads. */
  readonly hidesPayloads: boolean;
  readonly shared: SharedWatches;
  /** Send an event of the watch. */
  emit(data: object): void;
  /** Resolves when the reader has taken all events, or the stream has ended. */
  drained(): Promise<void>;
  /** Call a function once a second. @returns a function that ends this */
  everySecond(run: () => void): () => void;
}

/** Something that is watched for a view of the page. */
export interface OpenWatch<P> {
  /** Continue with other parameters. Without this method, the watch is closed, and a new one is opened. */
  update?(params: P): void;
  close(): void;
}

/** A kind of watch: what a view can show live. */
export interface LiveKind<P = unknown> {
  /** Check the parameters. @throws Fault wrongParameter */
  read(params: Readonly<Record<string, unknown>>): P;
  /** Begin to watch. @throws an error of the broker or a Fault, which the view shows */
  open(context: WatchContext, params: P): Awaitable<OpenWatch<P>>;
}
