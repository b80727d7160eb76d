import type { LookupSetup, OpenSource, SourceSetup, SourceType } from '../../lib/adapter.ts';
import type { Awaitable, StreamProperties } from '../../lib/index.ts';
import { instance, type PluginPlace } from './library.ts';

/** The context in which a source of a plugin is opened. */
export interface PluginSourceContext extends PluginPlace {
  /** Name of the stream. */
  readonly stream: string;
  /** Folder for files of the stream service; undefined if there is none. */
  readonly dataDir: string | undefined;
  /** Report an item that could not be read. */
  fail(error: unknown): void;
}

/** Takes what a source produces: a row, several rows, or bytes or a string in the FORMAT of the stream. */
export type Consumer = (item: unknown, metadata?: Readonly<Record<string, unknown>>) => void;

/**
 * A source of a plugin in the form of the original. Each stream has a separate one if the library exports a constructor
 * or a function.
 */
export interface PluginSource {
  /**
   * @param datasource the option DATASOURCE
   * @throws the reason why these properties cannot be used
   */
  configure?(datasource: string, properties: Record<string, unknown>): Awaitable<void>;
  /** Start producing rows. The result is not awaited: it may be a loop that runs until `close`. */
  open(context: PluginSourceContext, consumer: Consumer): unknown;
  /** Stop producing rows, and release everything. */
  close?(): Awaitable<void>;
}

/**
 * The type of sources for an export.
 * @throws Error if it is not a source
 */
export async function sourceOf(
  name: string,
  exported: unknown,
  place: PluginPlace,
  sections: Readonly<Record<string, StreamProperties>>
): Promise<SourceType> {
  const sample = (await instance(exported)) as (Partial<PluginSource> & Partial<SourceType>) | undefined | null;
  const common = { name, about: `Source of the plugin ${name}.`, sections };
  if (typeof sample !== 'object' || sample === null) throw new TypeError('a source must be an object');
  if (typeof sample.configure === 'function' || typeof sample.close === 'function') {
    if (typeof sample.open !== 'function') throw new TypeError('a source must have the method open');
    let first: unknown = sample;
    const next = async () => {
      const source = first ?? (await instance(exported));
      first = undefined;
      return source as PluginSource;
    };
    return { ...common, open: async (setup) => openSource(await next(), setup, place) };
  }
  if (typeof sample.open !== 'function' && typeof sample.openLookup !== 'function')
    throw new TypeError('a source must have the method open or openLookup');
  const type = sample as SourceType;
  return {
    ...common,
    about: typeof type.about === 'string' ? type.about : common.about,
    ...(type.properties === undefined ? {} : { properties: type.properties }),
    ...(type.for === undefined ? {} : { for: type.for }),
    ...(type.open === undefined ? {} : { open: (setup: SourceSetup) => type.open?.(setup) as Awaitable<OpenSource> }),
    ...(type.openLookup === undefined
      ? {}
      : {
          openLookup: (setup: LookupSetup) =>
            type.openLookup?.(setup) as ReturnType<NonNullable<SourceType['openLookup']>>
        })
  };
}

async function openSource(source: PluginSource, setup: SourceSetup, place: PluginPlace): Promise<OpenSource> {
  let isClosed = false;
  const { stream, datasource, dataDir } = setup;
  await source.configure?.(datasource, { ...setup.properties });
  const fail = (error: unknown) => {
    if (!isClosed) setup.failed(error);
  };
  const consumer: Consumer = (item, metadata) => {
    if (!isClosed) consume(setup, item, metadata);
  };
  const running = source.open({ ...place, stream, dataDir, fail }, consumer);
  if (isPromise(running))
    running.then(undefined, (error: unknown) => {
      if (isClosed) return;
      setup.failed(error);
      setup.disconnected(error);
    });
  return {
    async close() {
      isClosed = true;
      await source.close?.();
    }
  };
}

function consume(setup: SourceSetup, item: unknown, metadata: Readonly<Record<string, unknown>> | undefined): void {
  const meta = metadata as Parameters<SourceSetup['row']>[1];
  if (item instanceof Uint8Array) setup.bytes(item, meta);
  else if (typeof item === 'string') setup.bytes(Buffer.from(item), meta);
  else
    for (const row of Array.isArray(item) ? item : [item])
      if (typeof row === 'object' && row !== null && !Array.isArray(row)) setup.row(row, meta);
      else
        setup.failed(new TypeError(`a row of the source must be an object, not ${row === null ? 'null' : typeof row}`));
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined)?.then === 'function';
}
