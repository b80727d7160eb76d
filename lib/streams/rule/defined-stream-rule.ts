// `start`, `stop` and `change` run in turn with all other changes (`StreamRules`); timers of schedules and of
// repeated attempts therefore ask for a turn before they act, and look whether they still have a reason to. A start
// waits until the previous run has closed its sinks. Opening and closing have time limits, so that a sink which does
// not answer cannot block changes of other rules. The texts of the status are those of the documented product.

import type { ActorRef, RuleRun } from '../../base/actor.ts';
import type { Clock } from '../../base/clock.ts';
import { errorText, StateError } from '../../base/errors.ts';
import { OPEN_MS } from '../../targets/opener.ts';
import type { StreamRuleActions, StreamRuleEvent } from '../chart.ts';
import type { FormatType } from '../format.ts';
import { NO_SAMPLES, StreamSampler } from '../graph/samples.ts';
import { STOPPED, type StopCode, type StreamRuleCode, stateText } from '../rule-states.ts';
import type { HeldRows } from '../sources/held-rows.ts';
import type { SourceSections } from '../sources/stream-settings.ts';
import type {
  Properties,
  StreamDefinition,
  StreamRuleDefinition,
  StreamRuleSamples,
  StreamRuleStatus,
  StreamRuleSummary,
  Topology
} from '../types.ts';
import { within } from '../values/within.ts';
import type { ReadStreamRule } from './definition.ts';
import type { RulePlan } from './rule-plan.ts';
import type { Running } from './running.ts';
import type { Schedule } from './schedule.ts';

/** The configuration with which a rule is planned. */
export interface PlanConfiguration extends SourceSections {
  formats(): readonly FormatType[];
  /** See `StreamConfiguration`. */
  connected(type: string, properties: Properties, warn?: (text: string) => void): Properties;
}

/** The circumstances in which a rule is planned. */
export interface Planning {
  /** Streams and tables that take precedence over those of the catalogue, which may not have them yet. */
  readonly given?: ReadonlyMap<string, StreamDefinition> | undefined;
  /** The configuration of an import, which the service may not have yet. */
  readonly config?: PlanConfiguration | undefined;
  /** True for a rule that was accepted earlier, perhaps by another version: it may name a connection that does not exist. */
  readonly isStored?: boolean;
}

/** Dependencies of a rule on the service. */
export interface StreamRuleHost {
  readonly clock: Clock;
  startChart(actions: StreamRuleActions, id: string): RuleRun<StreamRuleEvent>;
  /** @throws the reason why the rule is invalid */
  plan(rule: ReadStreamRule, planning?: Planning): Promise<RulePlan>;
  /** The running rules on sources that have to be opened again for a plan, because the configuration has changed. */
  outdated(plan: RulePlan): readonly DefinedStreamRule[];
  /** Open the sinks, and load the checkpoint. @throws the reason why the rule cannot run */
  open(rule: DefinedStreamRule, plan: RulePlan): Promise<Running>;
  /** The schedule of a rule; undefined if it has none. */
  schedule(rule: ReadStreamRule): Promise<Schedule | undefined>;
  /** Run changes one at a time. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** Note that work continues after a call has returned. */
  during(work: Promise<unknown>): void;
  failed(error: unknown, during: string): void;
  /** Called when a rule that does not run begins to wait for its schedule, or no longer waits: its code has the reason. */
  stillStopped(rule: DefinedStreamRule): void;
  /** Called when the rule has started or stopped. @param reason the reason of a failure */
  changed(rule: DefinedStreamRule, isRunning: boolean, reason: string | undefined): void;
}

/** Time limit for closing sources and sinks, after which later changes continue. */
const CLOSE_MS = 10_000;

/** A rule over streams: its definition, and its actor. */
export class DefinedStreamRule {
  readonly id: string;
  /** When it was created, in milliseconds since 1970; undefined: before the broker started. */
  readonly createdAt: number | undefined;
  read: ReadStreamRule;
  #held: HeldRows | undefined;
  #sampler: StreamSampler | undefined;
  readonly #host: StreamRuleHost;
  readonly #chart: RuleRun<StreamRuleEvent>;
  /** The last plan that was started. */
  #plan: RulePlan | undefined;
  #running: Running | undefined;
  #closing: Promise<void> = Promise.resolve();
  #reason = STOPPED.stopped;
  #code: StopCode | 'failed' = 'stopped';
  #startedAt = 0;
  #stoppedAt = 0;
  /** Time of the next automatic start, by the schedule or after a failure; 0 if there is none. */
  #nextStartAt = 0;
  #attempts = 0;
  /** True while a definition starts that is refused if it cannot run. */
  #isTried = false;
  /** The start in progress, or the last one. It rejects if the rule cannot run. */
  #starting: Promise<void> | undefined;
  /** The schedule, as of the last start. */
  #schedule: Schedule | undefined;
  #timer: unknown;

  constructor(read: ReadStreamRule, host: StreamRuleHost, createdAt?: number) {
    this.createdAt = createdAt;
    this.id = read.definition.id;
    this.read = read;
    this.#host = host;
    this.#chart = host.startChart(this.#chartActions(), this.id);
  }

  get actor(): ActorRef {
    return this.#chart.actor;
  }

  get definition(): StreamRuleDefinition {
    return this.read.definition;
  }

  get isRunning(): boolean {
    return this.#chart.state === 'connected';
  }

  /** True if the rule waits for the next start of its schedule, or for its next attempt. */
  get isWaiting(): boolean {
    return !this.isRunning && this.#nextStartAt > 0;
  }

  /** True if the schedule of the rule has no further run. */
  get isOver(): boolean {
    return !this.isRunning && this.#code === 'over';
  }

  get summary(): StreamRuleSummary {
    const { id, name, version, tags } = this.definition;
    return { id, name, status: this.text, version, tags };
  }

  get text(): string {
    return stateText(this.code, this.#reason);
  }

  get code(): StreamRuleCode {
    return this.isRunning ? 'running' : this.#code;
  }

  get status(): StreamRuleStatus {
    return {
      state: this.#chart.state as StreamRuleStatus['state'],
      code: this.code,
      text: this.text,
      startedAt: this.#startedAt,
      stoppedAt: this.#stoppedAt,
      nextStartAt: this.#nextStartAt,
      sampledAt: this.#sampler?.sampledAt ?? 0,
      metrics: this.isRunning ? (this.#running?.metrics() ?? {}) : {}
    };
  }

  get samples(): StreamRuleSamples {
    return this.#sampler?.samples ?? NO_SAMPLES;
  }

  /** The samples of the rule, which its runs share. */
  sampler(...[pace, errorAdded]: ConstructorParameters<typeof StreamSampler>): StreamSampler {
    return (this.#sampler ??= new StreamSampler(pace, errorAdded));
  }

  /** The rows that its streams have produced while it is being replaced. */
  get held(): HeldRows | undefined {
    return this.#held;
  }

  /** Set the held rows before the rule is replaced; undefined afterwards. */
  hold(held: HeldRows | undefined): void {
    this.#held = held;
  }

  /** The plan, as of the last start. */
  get plan(): RulePlan | undefined {
    return this.#plan;
  }

  /** @throws StateError STREAM_RULE_NOT_STARTED */
  get topology(): Topology {
    if (this.#plan !== undefined) return this.#plan.topology;
    const text = `Fail to get rule ${this.id}'s topo, make sure the rule has been started before`;
    throw new StateError('STREAM_RULE_NOT_STARTED', text);
  }

  /**
   * Start the rule, or wait for its schedule. No effect if it is running.
   * @throws the reason why it cannot run; it is then stopped with this reason
   */
  async start(): Promise<void> {
    this.#attempts = 0;
    await this.#start();
  }

  /**
   * Start it with a definition that is refused if it cannot run: the failure is thrown and not reported as an event.
   * @throws as `start`
   */
  async tryStart(): Promise<void> {
    this.#isTried = true;
    try {
      await this.start();
    } finally {
      this.#isTried = false;
    }
  }

  async #start(): Promise<void> {
    this.#starting = undefined;
    this.#chart.send('start');
    await this.#starting;
  }

  /** Open it, or wait for its schedule. */
  async #begin(): Promise<void> {
    const schedule = await this.#scheduleOf();
    this.#schedule = schedule;
    if (schedule !== undefined) {
      const next = schedule.next(this.#host.clock.now());
      if (next.startsAt > this.#host.clock.now() || next.isOver) {
        this.#wait(next.startsAt, next.isOver ? 'over' : 'waiting');
        this.#host.stillStopped(this);
        return;
      }
    }
    await this.#open();
  }

  /** Stop the rule. Resolves when its sinks are closed. */
  async stop(code: StopCode = 'stopped'): Promise<void> {
    this.#wait(0, code);
    await this.#closing;
  }

  /** Replace the definition of a rule that is not running. */
  change(read: ReadStreamRule): void {
    this.read = read;
    this.#plan = undefined;
    this.#sampler?.clear();
  }

  /** Replace the definition by one that runs in the same way. */
  describe(read: ReadStreamRule): void {
    this.read = read;
  }

  /** Stop with the reason why the rule cannot start; a changed definition may fix this. */
  fail(error: unknown): void {
    const { restartStrategy } = this.definition.options;
    const { attempts, delay, multiplier, maxDelay, jitterFactor } = restartStrategy;
    const [sentence] = errorText(error).split('\n', 1); // the message of a statement continues with its text
    this.#reason = `${sentence.replace(/\.$/, '')}.`;
    this.#code = 'failed';
    if (this.#attempts < attempts && this.read.fault === undefined) {
      const baseMs = Math.min(maxDelay, delay * multiplier ** this.#attempts++);
      const jitterMs = baseMs * jitterFactor * (2 * Math.random() - 1);
      this.#nextStartAt = this.#host.clock.now() + Math.max(0, Math.round(baseMs + jitterMs));
    } else this.#nextStartAt = 0;
    this.#chart.send('failed');
    if (!this.#isTried) this.#host.changed(this, false, this.#reason);
  }

  /** End the rule. Resolves when its sinks are closed. */
  async drop(): Promise<void> {
    const wasRunning = this.isRunning;
    this.#nextStartAt = 0;
    this.#chart.send('dropped');
    if (wasRunning) this.#host.changed(this, false, undefined);
    await this.#closing;
    this.#sampler?.clear(); // the last rows are sampled until then
  }

  async #scheduleOf(): Promise<Schedule | undefined> {
    try {
      return await this.#host.schedule(this.read);
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  async #open(): Promise<void> {
    let others: readonly DefinedStreamRule[] = [];
    try {
      await this.#closing;
      this.#plan = await this.#host.plan(this.read, { isStored: true });
      others = this.#host.outdated(this.#plan);
      await Promise.all(others.map((rule) => rule.stop('reopening')));
      this.#running = await this.#opened(this.#plan);
      this.#attempts = 0;
      this.#chart.send('started');
      this.#host.changed(this, true, undefined);
    } catch (error) {
      this.fail(error);
      throw error;
    } finally {
      for (const rule of others) await rule.start().catch(() => undefined); // the status shows the reason
    }
  }

  /** @throws StreamFailure if a source or a sink does not open in time */
  async #opened(plan: RulePlan): Promise<Running> {
    const { clock, failed } = this.#host;
    const opening = this.#host.open(this, plan);
    try {
      return await within(clock, opening, OPEN_MS, `its sources and sinks are not open after ${OPEN_MS} ms`);
    } catch (error) {
      const close = async () => (await opening.catch(() => undefined))?.close();
      close().catch((failure) => failed(failure, `ending stream rule ${this.id}`));
      throw error;
    }
  }

  /** Stop until a time. @param startsAt 0: until a call of `start` */
  #wait(startsAt: number, code: StopCode): void {
    const wasRunning = this.isRunning;
    this.#nextStartAt = startsAt;
    this.#reason = STOPPED[code];
    this.#code = code;
    this.#chart.send('stopped');
    if (wasRunning) this.#host.changed(this, false, undefined);
  }

  /** Called when the schedule or the restart delay has elapsed. */
  #startAgain(): void {
    const { inTurn, during } = this.#host;
    const started = inTurn(async () => {
      if (this.isRunning || this.#nextStartAt === 0) return;
      this.#nextStartAt = 0;
      await this.#start();
    }).catch(() => undefined); // `fail` has reported it
    during(started);
  }

  // -------------------------------------------------------------------------------------- actions and guards of the chart

  #chartActions(): StreamRuleActions {
    return {
      isValid: () => this.read.fault === undefined,
      begin: () => {
        this.#starting = this.#begin();
      },
      refuse: () => this.#refuse(),
      run: () => this.#run(),
      halt: () => this.#halt(),
      awaitStart: () => this.#awaitStart(),
      cancelStart: () => this.#host.clock.clearTimeout(this.#timer),
      forget: () => {
        this.#plan = undefined;
      }
    };
  }

  #refuse(): void {
    const { error } = this.read.fault as ReadStreamRule['fault'] & object;
    this.#starting = Promise.reject(error);
    this.fail(error);
  }

  #run(): void {
    const { clock } = this.#host;
    this.#startedAt = clock.now();
    this.#nextStartAt = 0;
    this.#endLater();
  }

  /** Stop the rule at the end of its scheduled time. */
  #endLater(): void {
    const schedule = this.#schedule;
    if (schedule === undefined) return;
    const { clock, inTurn } = this.#host;
    const endsAt = schedule.endOf(this.#startedAt);
    if (endsAt === undefined) return;
    const startedAt = this.#startedAt;
    this.#timer = clock.setTimeout(() => {
      void inTurn(async () => {
        if (!this.isRunning || this.#startedAt !== startedAt) return;
        const next = schedule.next(clock.now());
        const isOver = next.isOver || !schedule.repeats;
        this.#wait(isOver ? 0 : next.startsAt, isOver ? 'over' : 'waiting');
      });
    }, endsAt - clock.now());
  }

  #halt(): void {
    const { clock, during, failed } = this.#host;
    clock.clearTimeout(this.#timer);
    this.#stoppedAt = clock.now();
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    const closing = within(clock, running.close(), CLOSE_MS, `sources and sinks are not closed after ${CLOSE_MS} ms`);
    this.#closing = closing.catch((error) => failed(error, `stopping stream rule ${this.id}`));
    during(this.#closing);
  }

  #awaitStart(): void {
    if (this.#nextStartAt === 0) return;
    const { clock } = this.#host;
    this.#timer = clock.setTimeout(() => this.#startAgain(), Math.max(0, this.#nextStartAt - clock.now()));
  }
}
