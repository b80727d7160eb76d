import type { OpenSink, SinkItem, SinkSetup, SinkType } from '../../lib/adapter.ts';
import type { Awaitable } from '../../lib/index.ts';
import { instance, type PluginPlace } from './library.ts';

/** The context in which a sink of a plugin is opened. */
export interface PluginSinkContext extends PluginPlace {
  /** The id of the rule. */
  readonly ruleId: string;
  /** Folder for files of the stream service; undefined if there is none. */
  readonly dataDir: string | undefined;
}

/**
 * A sink of a plugin in the form of the original. Each action has a separate one if the library exports a constructor
 * or a function.
 */
export interface PluginSink {
  /** @throws the reason why these properties cannot be used */
  configure?(properties: Record<string, unknown>): Awaitable<void>;
  /** Begin to accept outputs. */
  open?(context: PluginSinkContext): Awaitable<void>;
  /**
   * Send an output. It has failed if this throws or rejects.
   * @param value the rows, one row with `sendSingle`, or a string with a template
   * @param item the same with its bytes
   */
  collect(value: unknown, item: SinkItem): Awaitable<void>;
  /** Release everything. */
  close?(): Awaitable<void>;
}

/**
 * The type of sinks for an export.
 * @throws Error if it is not a sink
 */
export async function sinkOf(name: string, exported: unknown, place: PluginPlace): Promise<SinkType> {
  const sample = (await instance(exported)) as (Partial<PluginSink> & Partial<SinkType>) | undefined | null;
  const about = `Sink of the plugin ${name}.`;
  if (typeof sample !== 'object' || sample === null) throw new TypeError('a sink must be an object');
  if (typeof sample.collect === 'function') {
    let first: unknown = sample;
    const next = async () => {
      const sink = first ?? (await instance(exported));
      first = undefined;
      return sink as PluginSink;
    };
    return { name, about, open: async (setup) => openSink(await next(), setup, place) };
  }
  if (typeof sample.open !== 'function') throw new TypeError('a sink must have the method collect or open');
  const type = sample as SinkType;
  return {
    name,
    about: typeof type.about === 'string' ? type.about : about,
    ...(type.properties === undefined ? {} : { properties: type.properties }),
    open: (setup) => type.open(setup)
  };
}

async function openSink(sink: PluginSink, setup: SinkSetup, place: PluginPlace): Promise<OpenSink> {
  const { ruleId, dataDir, properties } = setup;
  await sink.configure?.({ ...properties });
  await sink.open?.({ ...place, ruleId, dataDir });
  setup.connected();
  return {
    send: (item) => sink.collect(item.value, item),
    close: () => sink.close?.()
  };
}
