// Changes run one after the other. A new definition is checked and planned before the running one is stopped; if it
// cannot run, the previous one goes on. While a rule is replaced, the rows of the streams that both definitions read
// are held and given to the next run, beginning in the turn in which the first one is stopped. A definition is
// persisted after it has been accepted, so that the store never gets the secrets of one that is refused. Rules of the
// options are not persisted.

import type { ActorRef } from '../../base/actor.ts';
import { BoundedIterable } from '../../base/collections/bounded-iterable.ts';
import { InvalidInput, NotFound, StateError } from '../../base/errors.ts';
import { SqlError, statementError } from '../../sql/sql-error.ts';
import type { StreamRulesApi } from '../api.ts';
import { definitionOf } from '../ddl/catalogue.ts';
import { isDefinition } from '../ddl/ddl.ts';
import type { StreamTable } from '../host.ts';
import type { StopCode } from '../rule-states.ts';
import type { HeldRows } from '../sources/held-rows.ts';
import { parseStreamStatement } from '../statement.ts';
import type {
  PlanNode,
  RuleOptions,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleSamples,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
  StreamStatementValidation,
  StreamsOptions,
  TestRow,
  Topology,
  Validation
} from '../types.ts';
import { DefinedStreamRule, type Planning, type StreamRuleHost } from './defined-stream-rule.ts';
import { checkTags, type ReadStreamRule, readStoredRule, readStreamRule } from './definition.ts';
import type { RulePlan } from './rule-plan.ts';
import { hideSecrets, keepSecrets, type PropertiesOf } from './secrets.ts';

/** An emission of a rule. */
export interface RuleEmission {
  readonly rule: string;
  readonly rows: readonly Record<string, unknown>[];
}

/** Dependencies of the rules on the service. */
interface StreamRulesHost extends StreamRuleHost {
  readonly options: StreamsOptions;
  /** Stores the rules as JSON, by id. */
  readonly table: StreamTable<string>;
  /** Called when a rule that is not to be started has been added. */
  notStarted(rule: DefinedStreamRule): void;
  /** @throws StateError STREAMS_STOPPED */
  checkRunning(): void;
  /** Run a plan over sample rows. */
  test(input: ReadStreamRule, rows: readonly TestRow[]): Promise<StreamRuleTest>;
  /**
   * Hold back the rows of the streams that two plans have in common.
   * @param options of the rule with the next plan
   * @param isChecked whether the running rule has a `qos` above 0
   */
  hold(before: RulePlan, next: RulePlan, options: RuleOptions, isChecked: boolean): HeldRows;
  /** The property table of each sink type. */
  readonly propertiesOf: PropertiesOf;
  /** Delete the checkpoint of a rule. */
  forget(id: string): Promise<void>;
}

/** Checks and tests of rules that do not exist. */
class StreamRuleChecks {
  readonly #host: StreamRulesHost;

  constructor(host: StreamRulesHost) {
    this.#host = host;
  }

  async validate(input: StreamRuleInput): Promise<Validation> {
    this.#host.checkRunning();
    const read = readStreamRule({ id: 'validated', ...input }, this.#host.options.ruleDefaults);
    const plan = await this.#check(read);
    return { sources: plan.streams.map(({ definition }) => definition.name), ...warningsOf(plan) };
  }

  async validateStatement(sql: string): Promise<StreamStatementValidation> {
    this.#host.checkRunning();
    try {
      if (isDefinition(sql)) {
        const { kind, name } = definitionOf(sql);
        return { errors: [], sources: [], columns: {}, defines: { kind, name } };
      }
      const { streams } = await this.#check(readStreamRule({ sql }, this.#host.options.ruleDefaults, true));
      const columns = streams.map(({ definition: { name }, needed }) => [name, needed === 'all' ? ['*'] : [...needed]]);
      return {
        errors: [],
        sources: streams.map(({ definition }) => definition.name),
        columns: Object.fromEntries(columns)
      };
    } catch (error) {
      return { errors: [statementError(placed(error, sql))], sources: [], columns: {} };
    }
  }

  async test(input: Pick<StreamRuleInput, 'sql' | 'options'>, rows: readonly TestRow[]): Promise<StreamRuleTest> {
    this.#host.checkRunning();
    return this.#host.test(readStreamRule(input, this.#host.options.ruleDefaults, true), rows);
  }

  /** Check that a rule can be planned and that its schedule is valid. */
  async #check(read: ReadStreamRule): Promise<RulePlan> {
    await this.#host.schedule(read);
    return this.#host.plan(read);
  }
}

/** The error for a stream that does not exist, with the place of its name. */
function placed(error: unknown, sql: string): unknown {
  if (!(error instanceof NotFound) || error.code !== 'STREAM_NOT_FOUND') return error;
  const { from, joins } = parseStreamStatement(sql);
  const nodes = [from, ...joins.map(({ source }) => source)];
  const node = nodes.find(({ name }) => error.message.includes(` stream ${name},`));
  return node === undefined ? error : new SqlError(error.message, sql, node.start);
}

/** Default maximum number of rules. */
const MAX_RULES = 10_000;

/** `broker.streams.rules`. Changes are made one at a time. */
export class StreamRules implements Omit<StreamRulesApi, 'drop' | keyof StreamRuleChecks> {
  readonly checks: StreamRuleChecks;
  readonly #host: StreamRulesHost;
  readonly #rules = new Map<string, DefinedStreamRule>();
  readonly #observers = new Map<BoundedIterable<RuleEmission>, string | undefined>();

  constructor(host: StreamRulesHost) {
    this.#host = host;
    this.checks = new StreamRuleChecks(host);
  }

  /** The rules by id, for the service and for searches. */
  get byId(): ReadonlyMap<string, DefinedStreamRule> {
    return this.#rules;
  }

  /** Pass an emission of a rule to its observers. */
  observe(rule: string, rows: readonly Record<string, unknown>[]): void {
    for (const [stream, of] of this.#observers)
      if (of === undefined || of === rule)
        stream.push({ rule, rows: rows.map((row) => ({ ...row })) }, 200 * rows.length); // the app may change the rows that it receives
  }

  /** The rules whose statement uses a stream or table. */
  usersOf(name: string): string[] {
    return [...this.#rules.values()]
      .filter(({ read }) => sourcesOf(read).some((source) => source.name === name))
      .map(({ id }) => id);
  }

  /** Load the rules of the options and of the store. Those that were running are started by `startAll`. */
  restore(): void {
    const { options, table } = this.#host;
    for (const input of options.rules ?? []) {
      const read = readStreamRule({ ...input, temp: true }, options.ruleDefaults, true);
      this.#add(read);
    }
    for (const [id, json] of table) if (!this.#rules.has(id)) this.#add(readStoredRule(id, json, options.ruleDefaults));
    for (const rule of this.#rules.values()) if (!rule.definition.triggered) this.#host.notStarted(rule);
  }

  /** Start the rules that should run. A rule that cannot start is stopped with the reason. */
  async startAll(): Promise<void> {
    for (const rule of this.#rules.values())
      if (rule.definition.triggered && !rule.isRunning) await rule.start().catch(() => undefined);
  }

  /** Stop the rules that run or wait. Others keep the reason why they are not running. */
  async stopAll(code: StopCode): Promise<void> {
    const going = [...this.#rules.values()].filter(({ isRunning, isWaiting }) => isRunning || isWaiting);
    await Promise.all(going.map((rule) => this.#stop(rule, code)));
  }

  endObservers(): void {
    for (const stream of [...this.#observers.keys()]) stream.end();
  }

  create(input: StreamRuleInput): Promise<StreamRuleDefinition> {
    return this.createAs(input, false);
  }

  /**
   * @param isOfApp whether the app created it by `broker.streams.rule`, so that it needs no actions and is not
   *   persisted
   */
  createAs(input: StreamRuleInput, isOfApp: boolean): Promise<StreamRuleDefinition> {
    return this.#change(async () => {
      const { options } = this.#host;
      const whole = { ...input, actions: keepSecrets(input?.actions, [], this.#host.propertiesOf) };
      const read = readStreamRule(isOfApp ? { ...whole, temp: true } : whole, options.ruleDefaults, isOfApp);
      const { id, triggered } = read.definition;
      if (this.#rules.has(id)) throw new StateError('STREAM_RULE_EXISTS', `Item ${id} already exists`);
      const most = options.max ?? MAX_RULES;
      if (this.#rules.size >= most)
        throw new StateError(
          'STREAM_RULE_LIMIT',
          `there are already ${most} rules, which is the maximum; delete one, or raise the option max`
        );
      const plan = await this.#check(read);
      const rule = this.#add(read, this.#host.clock.now());
      try {
        if (triggered) await rule.tryStart();
        else this.#host.notStarted(rule);
        await this.#persist(read); // only now, so that the store never receives the secrets of a refused rule
      } catch (error) {
        this.#rules.delete(id);
        await rule.drop();
        await this.#host.forget(id);
        throw error;
      }
      return { ...this.#shown(read), ...warningsOf(plan) };
    });
  }

  update(id: string, input: StreamRuleInput): Promise<StreamRuleDefinition> {
    return this.#change(async () => {
      const rule = this.#find(id);
      const actions = keepSecrets(input?.actions, rule.definition.actions, this.#host.propertiesOf);
      const read = readStreamRule({ ...input, actions, id }, this.#host.options.ruleDefaults);
      const plan = await this.#check(read);
      const shown = { ...this.#shown(read), ...warningsOf(plan) };
      const before = rule.read;
      const { isRunning } = rule;
      if (isRunning === read.definition.triggered && runsAlike(before, read)) {
        await this.#persist(read);
        rule.describe(read);
        return shown;
      }
      await this.#replace(rule, read);
      await this.#persist(read).catch(async (error) => {
        await this.#replace(rule, before);
        throw error;
      });
      return shown;
    });
  }

  /** Replace the definition of a rule. If the new one cannot run, the current one stays in use. */
  async #replace(rule: DefinedStreamRule, read: ReadStreamRule): Promise<void> {
    const { options, triggered } = read.definition;
    const next = triggered ? await this.#check(read) : undefined;
    await this.#holding(rule, next, options, () => this.#exchange(rule, read));
  }

  /**
   * Stop a rule and start it again without losing the rows that its remaining streams produce in between.
   * @param next undefined if it is not started
   */
  async #holding(
    rule: DefinedStreamRule,
    next: RulePlan | undefined,
    options: RuleOptions,
    run: () => Promise<void>
  ): Promise<void> {
    const { plan, isRunning } = rule;
    // in the turn in which the rule is stopped, so that each row goes to either the old or the new rule
    if (isRunning && plan !== undefined && next !== undefined)
      rule.hold(this.#host.hold(plan, next, options, rule.read.definition.options.qos > 0));
    try {
      await run();
    } finally {
      const { held } = rule;
      rule.hold(undefined);
      await held?.release();
    }
  }

  async #exchange(rule: DefinedStreamRule, read: ReadStreamRule): Promise<void> {
    const { read: before } = rule;
    const goesOn = rule.isRunning || rule.isWaiting;
    await rule.stop();
    rule.change(read);
    if (!read.definition.triggered) return;
    try {
      await rule.tryStart();
    } catch (error) {
      rule.change(before);
      await (goesOn ? rule.start() : rule.stop()).catch(() => undefined); // the status shows the reason
      throw error;
    }
  }

  /**
   * Check a rule before its import, together with the streams, tables and configuration that are imported with it.
   * @throws as `create`
   */
  async checkImport(input: StreamRuleInput, imported: Planning): Promise<void> {
    const present = this.#rules.get(input.id ?? '')?.definition.actions ?? [];
    const actions = keepSecrets(input?.actions, present, this.#host.propertiesOf);
    await this.#check(readStreamRule({ ...input, actions }, this.#host.options.ruleDefaults), imported);
  }

  /**
   * Restart the rules that run, and start those that have failed, so that they use the current streams, tables and
   * configuration.
   * @param plans the rules with their plans before the change. A rule with another one has been started since
   */
  restartOutdated(plans: ReadonlyMap<DefinedStreamRule, RulePlan | undefined>): Promise<void> {
    return this.#change(async () => {
      const isOutdated = (rule: DefinedStreamRule) =>
        this.#rules.get(rule.id) === rule && rule.plan === plans.get(rule) && rule.definition.triggered;
      const all = [...plans.keys()].filter((rule) => isOutdated(rule) && !rule.isWaiting && !rule.isOver);
      // all, so that the sources that they share are closed
      await Promise.all(all.filter(({ isRunning }) => isRunning).map((rule) => rule.stop('reopening')));
      for (const rule of all) await rule.start().catch(() => undefined); // the status shows the reason
    });
  }

  tag(id: string, changed: (tags: readonly string[]) => readonly string[]): Promise<void> {
    return this.#change(async () => {
      const rule = this.#find(id);
      if (typeof changed !== 'function')
        throw new InvalidInput('STREAM_RULE_INVALID', 'changed', 'a function', changed);
      await this.#describe(rule, { tags: checkTags(changed(rule.definition.tags)) });
    });
  }

  delete(id: string): Promise<void> {
    return this.#change(async () => {
      const rule = this.#find(id);
      await this.#host.table.delete(id);
      this.#rules.delete(id);
      await rule.drop();
      await this.#host.forget(id);
      for (const [stream, of] of [...this.#observers]) if (of === id) stream.end();
    });
  }

  async get(id: string): Promise<StreamRuleDefinition | undefined> {
    this.#host.checkRunning();
    const rule = this.#rules.get(id);
    return rule && this.#shown(rule.read);
  }

  async actor(id: string): Promise<ActorRef> {
    return this.#find(id).actor;
  }

  async list(): Promise<StreamRuleSummary[]> {
    this.#host.checkRunning();
    const summaries = [...this.#rules.values()].map(({ summary }) => summary);
    return summaries.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  start(id: string): Promise<void> {
    return this.#change(async () => {
      const rule = this.#find(id);
      await this.#trigger(rule, true);
      await rule.start();
    });
  }

  stop(id: string): Promise<void> {
    return this.#change(async () => {
      const rule = this.#find(id);
      await this.#trigger(rule, false);
      await this.#stop(rule, 'stopped');
    });
  }

  restart(id: string): Promise<void> {
    return this.#change(async () => {
      const rule = this.#find(id);
      await this.#trigger(rule, true);
      await this.#holding(rule, rule.plan, rule.definition.options, async () => {
        await rule.stop();
        await rule.start();
      });
    });
  }

  async status(id: string): Promise<StreamRuleStatus> {
    return this.#find(id).status;
  }

  async samples(id: string): Promise<StreamRuleSamples> {
    return this.#find(id).samples;
  }

  async topology(id: string): Promise<Topology> {
    return this.#find(id).topology;
  }

  async explain(id: string): Promise<PlanNode> {
    return (await this.#check(this.#find(id).read)).explain;
  }

  emissions(id?: string): AsyncIterableIterator<RuleEmission> {
    const stream = new BoundedIterable<RuleEmission>(() => void this.#observers.delete(stream));
    this.#observers.set(stream, id);
    return stream;
  }

  /** A rule definition without its secrets. */
  #shown({ definition }: ReadStreamRule): StreamRuleDefinition {
    return { ...definition, actions: hideSecrets(definition.actions, this.#host.propertiesOf) };
  }

  #add(read: ReadStreamRule, createdAt?: number): DefinedStreamRule {
    const rule = new DefinedStreamRule(read, this.#host, createdAt);
    this.#rules.set(rule.id, rule);
    return rule;
  }

  async #stop(rule: DefinedStreamRule, code: StopCode): Promise<void> {
    const { isWaiting } = rule;
    await rule.stop(code);
    if (isWaiting) this.#host.stillStopped(rule);
  }

  #find(id: string): DefinedStreamRule {
    this.#host.checkRunning();
    const rule = this.#rules.get(id);
    if (rule === undefined) throw new NotFound('STREAM_RULE_NOT_FOUND', `Rule ${id} is not found`);
    return rule;
  }

  /** Check that a rule can be planned and that its schedule is valid. */
  async #check(read: ReadStreamRule, planning?: Planning): Promise<RulePlan> {
    await this.#host.schedule(read);
    return this.#host.plan(read, planning);
  }

  #change<T>(run: () => Promise<T>): Promise<T> {
    return this.#host.inTurn(async () => {
      this.#host.checkRunning();
      return run();
    });
  }

  /** Record whether a rule should run after a restart. */
  async #trigger(rule: DefinedStreamRule, triggered: boolean): Promise<void> {
    if (rule.definition.triggered !== triggered) await this.#describe(rule, { triggered });
  }

  /**
   * Change a part of the definition that does not affect how the rule runs.
   * @throws the reason why the stored rule is not valid
   */
  async #describe(
    rule: DefinedStreamRule,
    changed: Pick<Partial<StreamRuleDefinition>, 'triggered' | 'tags'>
  ): Promise<void> {
    if (rule.read.fault !== undefined) throw rule.read.fault.error; // the store keeps it unchanged
    const read = { ...rule.read, definition: { ...rule.definition, ...changed } };
    await this.#persist(read);
    rule.describe(read);
  }

  async #persist({ definition, isTemporary }: ReadStreamRule): Promise<void> {
    if (isTemporary) await this.#host.table.delete(definition.id);
    else await this.#host.table.set(definition.id, JSON.stringify(definition));
  }
}

/** The member `warnings` of an answer, if there are any. */
function warningsOf({ warnings }: RulePlan): Pick<Validation, 'warnings'> {
  return warnings.length > 0 ? { warnings } : {};
}

/** A stream or table of a statement; `label` is its name in the status, as `planOf` gives it. */
interface RuleSource {
  readonly name: string;
  readonly label: string;
}

/** The streams and tables of statements, cached. */
const SOURCES = new WeakMap<ReadStreamRule, readonly RuleSource[]>();

/** The streams and tables of a rule's statement; none if the statement is invalid. */
export function sourcesOf(read: ReadStreamRule): readonly RuleSource[] {
  let sources = SOURCES.get(read);
  if (sources === undefined) SOURCES.set(read, (sources = parsedSources(read.definition.sql)));
  return sources;
}

function parsedSources(sql: string): RuleSource[] {
  try {
    const { from, joins } = parseStreamStatement(sql);
    const all = [from, ...joins.map(({ source }) => source)];
    const isTwice = (name: string) => all.filter((one) => one.name === name).length > 1;
    return all.map(({ name, alias = name }) => ({ name, label: isTwice(name) ? alias : name }));
  } catch {
    return []; // the statement is checked when the rule starts
  }
}

/** Check whether two definitions run in the same way, so that no restart is needed. */
function runsAlike(a: ReadStreamRule, b: ReadStreamRule): boolean {
  const part = ({ definition: { sql, actions, options }, isTemporary }: ReadStreamRule) =>
    JSON.stringify([sql, actions, options, isTemporary]);
  const hasCode = [...a.actions, ...b.actions].some(({ call }) => call !== undefined);
  return !hasCode && part(a) === part(b);
}
