// The stream service is imported when it is needed, so that a broker without streams does not load it. It is restored
// once (after a failure, the next call tries again), but begins again after each start of the broker. `halt` closes
// sources and sinks; from then on, a call that needs the service does not start its rules again before the next start.
// Functions, sources and sinks can be defined before the start, and plugins do so in `beforeStart`, because definitions
// in the store may use them.

import { StateError } from '../../base/errors.ts';
import { isPlainObject } from '../../base/fields.ts';
import { lazy, lazyIterator, onceMade } from '../../base/lazy.ts';
import type { StreamRulesApi, StreamsApi } from '../../streams/api.ts';
import type { StreamsHost } from '../../streams/host.ts';
import type { StreamService } from '../../streams/service.ts';
import type { SinkAction } from '../../streams/sinks/sink-action.ts';
import type { Properties, SinkType } from '../../streams/types.ts';

/** The tables in the store. */
export const STREAMS_TABLE = '$streams';
export const STREAM_RULES_TABLE = '$streamRules';
export const STREAM_NOTES_TABLE = '$streamNotes';
export const STREAM_CONFIG_TABLE = '$streamConfig';

/** The part of the broker that `Streams` uses. */
interface StreamsFacetHost extends StreamsHost {
  /** True if the content of the store is known. */
  readonly isOpen: boolean;
  /** Called when a sink was defined. */
  sinkCreated(): Promise<void>;
}

/**
 * The streams of a broker. The service is loaded by the first call, or by the start of the broker if there is a stream, a rule or a note of a
 * source in the store or in the options.
 */
export class Streams {
  /** `broker.streams`. */
  readonly api: StreamsApi;
  readonly #host: StreamsFacetHost;
  readonly #beforeStart = new Set<() => Promise<void>>();
  #service: StreamService | undefined;
  /** True if the broker has stopped, so that rules do not run. */
  #isHalted = false;
  readonly #load = onceMade(async () => {
    const { StreamService } = await import('../../streams/service.ts');
    this.#service = new StreamService(this.#host, this.#beforeStart);
    return this.#service;
  });
  readonly #restored = onceMade(async () => (await this.#load()).restore());

  constructor(host: StreamsFacetHost) {
    this.#host = host;
    this.api = this.#methods();
  }

  /** The rules by id, as far as the service is loaded. */
  get rulesById(): StreamService['rules']['byId'] {
    return this.#service?.rules.byId ?? new Map();
  }

  /** The topic filters from which a rule reads messages of this broker; undefined if it may read others. @param id of a rule */
  async topicsOf(id: string): Promise<readonly string[] | undefined> {
    const read = this.rulesById.get(id)?.read;
    const section = { kind: 'confKey', type: 'mqtt', name: 'default' } as const;
    if (read === undefined || (await this.api.config.get(section)) !== undefined) return undefined;
    const { sourcesOf } = await import('../../streams/rule/rules.ts');
    const { topicFilters } = await import('../../streams/sources/mqtt-source.ts');
    const filters: string[] = [];
    for (const { name } of sourcesOf(read)) {
      const { TYPE = 'mqtt', DATASOURCE, CONF_KEY } = (await this.api.get('stream', name))?.options ?? {};
      if (TYPE.toLowerCase() !== 'mqtt' || CONF_KEY !== undefined || DATASOURCE === undefined) return undefined;
      filters.push(...topicFilters(DATASOURCE));
    }
    return filters.length === 0 ? undefined : filters;
  }

  /** The window of a rule that collects several rows, as it is written, and how long it takes; `Infinity`: until other rows arrive. */
  async windowOf(id: string): Promise<{ readonly text: string; readonly lengthMs: number } | undefined> {
    const { read } = this.rulesById.get(id) ?? {};
    if (read === undefined || read.fault !== undefined) return undefined;
    const { sql, options } = read.definition;
    const { parseStreamStatement } = await import('../../streams/statement.ts');
    const { UNIT_MS } = await import('../../streams/operators/windows/spec.ts');
    const { window } = parseStreamStatement(sql);
    if (window === undefined || window.kind === 'sliding') return undefined;
    const { start, end, kind, unit, lengths } = window;
    if (kind === 'count' && (lengths[1] ?? lengths[0]) === 1) return undefined;
    const isTimed = unit !== undefined && !options.isEventTime;
    return { text: sql.slice(start, end), lengthMs: isTimed ? lengths[0] * UNIT_MS[unit] : Infinity };
  }

  /** Tell whether a rule publishes at this broker. @param isTarget selects the topics, which may be templates */
  publishesTo(id: string, isTarget: (template: unknown) => boolean): boolean {
    const { actions = [] } = this.rulesById.get(id)?.definition ?? {};
    return actions.flatMap(Object.entries<Properties>).some(([type, { topic, server, connectionSelector }]) => {
      if (type.toLowerCase() !== 'mqtt' || connectionSelector !== undefined || !isTarget(topic)) return false;
      return server === undefined || server === '' || this.#host.isOwn(`${server}`);
    });
  }

  /** The sinks, as actions of broker rules. */
  async sinkActions(): Promise<SinkAction[]> {
    return (await this.#load()).sinkActions(this.#host.isOpen);
  }

  /** Called when the store is open, and the broker is about to accept connections. */
  async restore(): Promise<void> {
    this.#isHalted = false;
    const { options, definitions, rules, notes } = this.#host;
    const isNeeded =
      this.#service !== undefined ||
      this.#beforeStart.size > 0 ||
      [...definitions].length > 0 ||
      [...rules].length > 0 ||
      [...notes].length > 0 || // other servers may have data to delete
      (options.definitions ?? []).length > 0 ||
      (options.rules ?? []).length > 0;
    if (!isNeeded) return;
    const service = await this.#load();
    await this.#restored();
    await service.begin(); // again, after a stop
  }

  /** Called when the broker stops. Resolves when sources and sinks are closed. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await this.#service?.halt();
  }

  #methods(): StreamsApi {
    const service = () => this.#service;
    const loaded = () => this.#loaded();
    const methods = {
      ...lazy(loaded, 'create', 'replace', 'delete', 'get', 'list', 'rule', 'push'),
      ...lazy(loaded, 'export', 'import', 'start', 'stop'),
      ...lazy(this.#load, 'functions', 'sources', 'sinks', 'createFunction', 'createSource', 'deleteType'),
      createSink: async (type: SinkType) => {
        await (await this.#load()).createSink(type);
        await this.#host.sinkCreated();
      }
    };
    return {
      ...methods,
      rules: this.#ruleMethods(),
      config: lazy(async () => (await loaded()).config, 'list', 'get', 'set', 'delete'),
      get isRunning() {
        return service()?.isRunning ?? true;
      },
      // the app may change its object in the meantime; the service refuses a value that is not an object
      push: (stream, row, meta) => methods.push(stream, isPlainObject(row) ? { ...row } : row, meta),
      beforeStart: (run) => {
        this.#beforeStart.add(run);
        return () => void this.#beforeStart.delete(run);
      },
      define: methods.create,
      drop: methods.delete,
      defineFunction: methods.createFunction,
      defineSource: methods.createSource,
      defineSink: methods.createSink,
      undefine: methods.deleteType
    };
  }

  #ruleMethods(): StreamRulesApi {
    const rules = async () => (await this.#loaded()).rules;
    const methods = {
      ...lazy(rules, 'create', 'update', 'delete', 'actor', 'get', 'list', 'start', 'stop', 'restart', 'status'),
      ...lazy(rules, 'topology', 'samples', 'tag', 'explain'),
      ...lazy(async () => (await rules()).checks, 'validate', 'validateStatement', 'test')
    };
    return {
      ...methods,
      drop: methods.delete,
      emissions: (id) =>
        this.#service?.rules.emissions(id) ?? lazyIterator(rules().then((loaded) => loaded.emissions(id)))
    };
  }

  /** The service, with the streams and rules of the store. @throws StateError BROKER_NOT_STARTED */
  async #loaded(): Promise<StreamService> {
    const service = await this.#load();
    if (!this.#host.isOpen)
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started, so its streams are not known yet');
    await this.#restored();
    if (!this.#isHalted) await service.begin();
    return service;
  }
}
