// The stream service is imported when it is needed, so that a broker without streams does not load it. It is restored
// once, but begins again after each start of the broker. `halt` closes sources and sinks; from then on, a call that
// needs the service does not start its rules again before the next start. Functions, sources and sinks can be defined
// before the start, and plugins do so in `beforeStart`, because definitions in the store may use them.

import type { ActorRef } from '../../base/actor.ts';
import { StateError } from '../../base/errors.ts';
import type { StreamRule, StreamRulesApi, StreamsApi } from '../../streams/api.ts';
import type { StreamFunction } from '../../streams/function.ts';
import type { StreamsHost } from '../../streams/host.ts';
import type { StreamService } from '../../streams/service.ts';
import type {
  PlanNode,
  Ruleset,
  SinkType,
  SourceType,
  StreamDefinition,
  StreamKind,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
  TestRow,
  Topology,
  Validation
} from '../../streams/types.ts';

/** The tables in the store. */
export const STREAMS_TABLE = '$streams';
export const STREAM_RULES_TABLE = '$streamRules';
export const STREAM_NOTES_TABLE = '$streamNotes';

/** The part of the broker that `Streams` uses. */
interface StreamsFacetHost extends StreamsHost {
  /** True if the content of the store is known. */
  readonly isOpen: boolean;
}

/** Loads the stream service with the content of the store. */
type Loaded = () => Promise<StreamService>;

/**
 * Streams, tables and continuous queries over them: `broker.streams`. The service is loaded by the first call, or by the start of the
 * broker if there is a stream, a rule or a note of a source in the store or in the options.
 */
export class Streams implements StreamsApi {
  readonly rules: StreamRulesApi;
  readonly #host: StreamsFacetHost;
  readonly #beforeStart = new Set<() => Promise<void>>();
  #service: StreamService | undefined;
  #loading: Promise<StreamService> | undefined;
  #restored: Promise<void> | undefined;
  /** True if the broker has stopped, so that rules do not run. */
  #isHalted = false;

  /** @internal */
  constructor(host: StreamsFacetHost) {
    this.#host = host;
    this.rules = new StreamRulesFacet(
      () => this.#loaded(),
      () => this.#service
    );
  }

  get isRunning(): boolean {
    return this.#service?.isRunning ?? true;
  }

  create(ddl: string): Promise<StreamDefinition> {
    return this.#loaded().then((service) => service.create(ddl));
  }

  /** @deprecated Use `create`. */
  define(ddl: string): Promise<StreamDefinition> {
    return this.create(ddl);
  }

  replace(ddl: string): Promise<StreamDefinition> {
    return this.#loaded().then((service) => service.replace(ddl));
  }

  delete(kind: StreamKind, name: string, options?: { readonly force?: boolean }): Promise<void> {
    return this.#loaded().then((service) => service.delete(kind, name, options));
  }

  /** @deprecated Use `delete`. */
  drop(kind: StreamKind, name: string, options?: { readonly force?: boolean }): Promise<void> {
    return this.delete(kind, name, options);
  }

  get(kind: StreamKind, name: string): Promise<StreamDefinition | undefined> {
    return this.#loaded().then((service) => service.get(kind, name));
  }

  list(kind: StreamKind): Promise<StreamDefinition[]> {
    return this.#loaded().then((service) => service.list(kind));
  }

  rule(sql: string, input?: Omit<StreamRuleInput, 'sql'>): Promise<StreamRule> {
    return this.#loaded().then((service) => service.rule(sql, input));
  }

  push(
    stream: string,
    row: Readonly<Record<string, unknown>>,
    meta?: Readonly<Record<string, unknown>>
  ): Promise<void> {
    // the app may change its object in the meantime; the service refuses a value that is not an object
    const copy = typeof row === 'object' && row !== null && !Array.isArray(row) ? { ...row } : row;
    return this.#loaded().then((service) => service.push(stream, copy, meta));
  }

  functions(): Promise<StreamFunction[]> {
    return this.#load().then((service) => service.functions());
  }

  sources(): Promise<SourceType[]> {
    return this.#load().then((service) => service.sources());
  }

  sinks(): Promise<SinkType[]> {
    return this.#load().then((service) => service.sinks());
  }

  createFunction(definition: StreamFunction): Promise<void> {
    return this.#load().then((service) => service.createFunction(definition));
  }

  /** @deprecated Use `createFunction`. */
  defineFunction(definition: StreamFunction): Promise<void> {
    return this.createFunction(definition);
  }

  createSource(type: SourceType): Promise<void> {
    return this.#load().then((service) => service.createSource(type));
  }

  /** @deprecated Use `createSource`. */
  defineSource(type: SourceType): Promise<void> {
    return this.createSource(type);
  }

  createSink(type: SinkType): Promise<void> {
    return this.#load().then((service) => service.createSink(type));
  }

  /** @deprecated Use `createSink`. */
  defineSink(type: SinkType): Promise<void> {
    return this.createSink(type);
  }

  deleteType(what: 'function' | 'source' | 'sink', name: string): Promise<boolean> {
    return this.#load().then((service) => service.deleteType(what, name));
  }

  /** @deprecated Use `deleteType`. */
  undefine(what: 'function' | 'source' | 'sink', name: string): Promise<boolean> {
    return this.deleteType(what, name);
  }

  export(): Promise<Ruleset> {
    return this.#loaded().then((service) => service.export());
  }

  import(ruleset: Ruleset): Promise<{ readonly streams: number; readonly tables: number; readonly rules: number }> {
    return this.#loaded().then((service) => service.import(ruleset));
  }

  beforeStart(run: () => Promise<void>): () => void {
    this.#beforeStart.add(run);
    return () => void this.#beforeStart.delete(run);
  }

  start(): Promise<void> {
    return this.#loaded().then((service) => service.start());
  }

  stop(): Promise<void> {
    return this.#loaded().then((service) => service.stop());
  }

  /** Called when the store is open, and the broker is about to accept connections. @internal */
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
    await this.#restore(service);
    await service.begin(); // again, after a stop
  }

  /** Called when the broker stops. Resolves when sources and sinks are closed. @internal */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await this.#service?.halt();
  }

  /** The service, with the streams and rules of the store. @throws StateError BROKER_NOT_STARTED */
  async #loaded(): Promise<StreamService> {
    const service = await this.#load();
    if (!this.#host.isOpen)
      throw new StateError('BROKER_NOT_STARTED', 'the broker is not started, so its streams are not known yet');
    await this.#restore(service);
    if (!this.#isHalted) await service.begin();
    return service;
  }

  #restore(service: StreamService): Promise<void> {
    this.#restored ??= service.restore();
    return this.#restored;
  }

  #load(): Promise<StreamService> {
    this.#loading ??= import('../../streams/service.ts').then(({ StreamService }) => {
      this.#service = new StreamService(this.#host, this.#beforeStart);
      return this.#service;
    });
    return this.#loading;
  }
}

/** `broker.streams.rules`. */
class StreamRulesFacet implements StreamRulesApi {
  readonly #loaded: Loaded;
  readonly #present: () => StreamService | undefined;

  constructor(loaded: Loaded, present: () => StreamService | undefined) {
    this.#loaded = loaded;
    this.#present = present;
  }

  create(input: StreamRuleInput): Promise<StreamRuleDefinition> {
    return this.#all().then((all) => all.create(input));
  }

  update(id: string, input: StreamRuleInput): Promise<StreamRuleDefinition> {
    return this.#all().then((all) => all.update(id, input));
  }

  delete(id: string): Promise<void> {
    return this.#all().then((all) => all.delete(id));
  }

  /** @deprecated Use `delete`. */
  drop(id: string): Promise<void> {
    return this.delete(id);
  }

  actor(id: string): Promise<ActorRef> {
    return this.#all().then((all) => all.actor(id));
  }

  get(id: string): Promise<StreamRuleDefinition | undefined> {
    return this.#all().then((all) => all.get(id));
  }

  list(): Promise<StreamRuleSummary[]> {
    return this.#all().then((all) => all.list());
  }

  start(id: string): Promise<void> {
    return this.#all().then((all) => all.start(id));
  }

  stop(id: string): Promise<void> {
    return this.#all().then((all) => all.stop(id));
  }

  restart(id: string): Promise<void> {
    return this.#all().then((all) => all.restart(id));
  }

  status(id: string): Promise<StreamRuleStatus> {
    return this.#all().then((all) => all.status(id));
  }

  topology(id: string): Promise<Topology> {
    return this.#all().then((all) => all.topology(id));
  }

  tag(id: string, changed: (tags: readonly string[]) => readonly string[]): Promise<void> {
    return this.#all().then((all) => all.tag(id, changed));
  }

  validate(input: StreamRuleInput): Promise<Validation> {
    return this.#all().then((all) => all.validate(input));
  }

  explain(id: string): Promise<PlanNode> {
    return this.#all().then((all) => all.explain(id));
  }

  test(input: Pick<StreamRuleInput, 'sql' | 'options'>, rows: readonly TestRow[]): Promise<StreamRuleTest> {
    return this.#all().then((all) => all.test(input, rows));
  }

  emissions(id?: string): ReturnType<StreamRulesApi['emissions']> {
    const present = this.#present();
    if (present !== undefined) return present.rules.emissions(id);
    const loading = this.#all().then((all) => all.emissions(id));
    loading.catch(() => undefined); // `next` throws it
    return {
      next: () => loading.then((emissions) => emissions.next()),
      return: () => loading.then((emissions) => emissions.return!()),
      [Symbol.asyncIterator]() {
        return this;
      }
    };
  }

  async #all(): Promise<StreamService['rules']> {
    return (await this.#loaded()).rules;
  }
}
