import {
  NotFound,
  type Ruleset,
  SqlError,
  StateError,
  type StreamDefinition,
  type StreamKind,
  type StreamRuleDefinition,
  type StreamRuleInput,
  type StreamRuleOptions,
  type StreamsApi
} from 'embermq';

type Rules = StreamsApi['rules'];

const OPTIONS = {
  isEventTime: false,
  lateTolerance: 1_000,
  concurrency: 1,
  bufferLength: 1_024,
  sendMetaToSink: false,
  sendError: true,
  qos: 0,
  checkpointInterval: 300_000
} as StreamRuleOptions;

const METRICS: Readonly<Record<string, number | string>> = {
  source_demo_0_records_in_total: 1,
  op_1_preprocessor_demo_0_last_invocation: '2020-01-02T11:28:33.054821'
};

/** A stream service that keeps definitions in memory, and of statements knows SELECT ... FROM and CREATE. */
export class FakeStreams {
  isRunning = true;
  readonly #definitions = new Map<string, StreamDefinition>();
  readonly #rules = new Map<string, StreamRuleDefinition>();
  readonly #running = new Set<string>();
  readonly #started = new Set<string>();

  get api(): StreamsApi {
    return this as unknown as StreamsApi;
  }

  async define(sql: string): Promise<StreamDefinition> {
    const made = this.#parsed(sql);
    if (this.#definitions.has(made.name))
      throw new StateError('STREAM_EXISTS', `a stream or table "${made.name}" is already defined`);
    this.#definitions.set(made.name, made);
    return made;
  }

  async replace(sql: string): Promise<StreamDefinition> {
    const made = this.#parsed(sql);
    this.#definitions.set(made.name, made);
    return made;
  }

  async drop(kind: StreamKind, name: string, { force = false }: { force?: boolean } = {}): Promise<void> {
    if ((await this.get(kind, name)) === undefined)
      throw new NotFound('STREAM_NOT_FOUND', `there is no ${kind} "${name}"`);
    const isUsed = [...this.#rules.values()].some(({ sql }) => sql.includes(`FROM ${name}`));
    if (isUsed && !force) throw new StateError('STREAM_IN_USE', `rules use the ${kind} "${name}"`);
    this.#definitions.delete(name);
  }

  async get(kind: StreamKind, name: string): Promise<StreamDefinition | undefined> {
    const found = this.#definitions.get(name);
    return found?.kind === kind ? found : undefined;
  }

  async list(kind: StreamKind): Promise<StreamDefinition[]> {
    const found = [...this.#definitions.values()].filter((one) => one.kind === kind);
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async functions() {
    return [
      { name: 'abs', family: 'math', kind: 'scalar', params: ['number'], about: 'The absolute value.', run: Math.abs }
    ];
  }

  async sources() {
    return [{ name: 'mqtt', about: 'Messages.', properties: { server: { type: 'string', about: 'Where it is.' } } }];
  }

  async sinks() {
    return [{ name: 'log', about: 'Lines of the log.' }];
  }

  async export(): Promise<Ruleset> {
    const texts = async (kind: StreamKind) =>
      Object.fromEntries((await this.list(kind)).map(({ name, sql }) => [name, sql]));
    const rules = [...this.#rules.values()].map(({ id, sql, actions }) => [id, JSON.stringify({ id, sql, actions })]);
    return { streams: await texts('stream'), tables: await texts('table'), rules: Object.fromEntries(rules) };
  }

  async import({ streams, tables, rules }: Ruleset) {
    for (const sql of [...Object.values(streams), ...Object.values(tables)]) await this.replace(sql);
    for (const text of Object.values(rules)) this.#rules.set(JSON.parse(text).id, this.#rule(JSON.parse(text)));
    const count = (texts: object) => Object.keys(texts).length;
    return { streams: count(streams), tables: count(tables), rules: count(rules) };
  }

  readonly rules: Pick<Rules, Exclude<keyof Rules, 'emissions'>> = {
    create: async (input) => {
      this.#check();
      const rule = this.#rule(input);
      if (this.#rules.has(rule.id)) throw new StateError('STREAM_RULE_EXISTS', `there is a rule "${rule.id}"`);
      this.#rules.set(rule.id, rule);
      if (rule.triggered) this.#run(rule.id);
      return rule;
    },
    update: async (id, input) => {
      this.#known(id);
      const rule = this.#rule({ ...input, id });
      this.#rules.set(id, rule);
      this.#run(id);
      return rule;
    },
    drop: async (id) => {
      this.#known(id);
      this.#rules.delete(id);
      this.#running.delete(id);
      this.#started.delete(id);
    },
    get: async (id) => this.#rules.get(id),
    list: async () =>
      [...this.#rules.values()]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map(({ id, name, version, tags }) => ({ id, name, version, tags, status: this.#status(id) })),
    start: async (id) => this.#run(this.#known(id).id),
    stop: async (id) => void this.#running.delete(this.#known(id).id),
    restart: async (id) => this.#run(this.#known(id).id),
    status: async (id) => {
      this.#known(id);
      const isRunning = this.#running.has(id);
      return {
        state: isRunning ? 'connected' : 'disconnected',
        text: this.#status(id),
        startedAt: 1,
        stoppedAt: isRunning ? 0 : 2,
        nextStartAt: 0,
        metrics: isRunning ? METRICS : {}
      };
    },
    topology: async (id) => {
      this.#known(id);
      if (!this.#started.has(id)) throw new StateError('STREAM_RULE_NOT_STARTED', `the rule "${id}" has not run`);
      const edges = { source_demo: ['op_1_preprocessor_demo'], op_1_preprocessor_demo: ['sink_log_0'] };
      return { sources: ['source_demo'], edges };
    },
    validate: async (input) => ({ sources: this.#streamsOf(this.#rule(input).sql) }),
    explain: async (id) => {
      this.#known(id);
      const source = { name: 'source_demo', about: 'demo', inputs: [] };
      return { name: 'op_1_project', about: 'all columns', inputs: [source] };
    },
    test: async ({ sql }, rows) => {
      this.#streamsOf(sql);
      return { emissions: rows.map(({ values }) => [values]), errors: [] };
    }
  };

  #check(): void {
    if (!this.isRunning) throw new StateError('STREAMS_STOPPED', 'the stream service is stopped');
  }

  #status(id: string): string {
    return this.#running.has(id) ? 'Running' : 'Stopped: canceled manually.';
  }

  #run(id: string): void {
    this.#streamsOf(this.#known(id).sql);
    this.#running.add(id);
    this.#started.add(id);
  }

  #known(id: string): StreamRuleDefinition {
    const rule = this.#rules.get(id);
    if (rule === undefined) throw new NotFound('STREAM_RULE_NOT_FOUND', `there is no stream rule "${id}"`);
    return rule;
  }

  #rule(input: StreamRuleInput): StreamRuleDefinition {
    this.#streamsOf(input.sql);
    const { id = 'x', sql, actions = [], options, triggered = true, name = '', version = '', tags = [] } = input;
    return {
      id,
      sql,
      actions: actions as StreamRuleDefinition['actions'],
      options: { ...OPTIONS, ...options },
      triggered,
      name,
      version,
      tags
    };
  }

  #streamsOf(sql: string): string[] {
    const [, name] = /^SELECT .+ FROM (\w+)/.exec(sql) ?? [];
    if (name === undefined) throw new SqlError('expected SELECT', sql, 0);
    if (!this.#definitions.has(name))
      throw new NotFound('STREAM_NOT_FOUND', `fail to get stream ${name}, please check if stream is created`);
    return [name];
  }

  #parsed(sql: string): StreamDefinition {
    const [, kind, name, columns, options] = /^CREATE (STREAM|TABLE) (\w+) \((.*)\) WITH \((.*)\)$/.exec(sql) ?? [];
    if (kind === undefined) throw new SqlError('expected CREATE', sql, 0);
    const written = [...options.matchAll(/(\w+)="([^"]*)"/g)].map(([, option, text]) => [option, text]);
    return {
      kind: kind.toLowerCase() as StreamKind,
      name,
      columns:
        columns === ''
          ? undefined
          : [
              { name: 'id', type: { type: 'bigint' } },
              { name: 'tags', type: { type: 'array', element: { type: 'string' } } },
              { name: 'pos', type: { type: 'struct', fields: [{ name: 'x', type: { type: 'float' } }] } }
            ],
      options: Object.fromEntries(written),
      sql
    };
  }
}
