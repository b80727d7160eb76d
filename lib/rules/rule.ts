// A rule receives events only while its chart is in `connected`; `attach` and `detach` are
// actions of the chart. Making actions is asynchronous: each attempt has a number, and one that ends after a later
// one has begun is discarded. Another statement is attached in the turn in which the previous one is detached, so no
// event is missed or seen twice. Evaluating a statement must not throw into the path of the message: failures are
// counted and reported.

import type { ActorRef, RuleRun } from '../base/actor.ts';
import { errorText } from '../base/errors.ts';
import { consoleText, INSPECT, inOneLine, namedOf } from '../base/symbols.ts';
import { FunctionTimer } from '../base/timing-wheel.ts';
import type { EventColumns } from '../sql/row.ts';
import type { Value } from '../sql/values.ts';
import type { RuleActions, RuleChartEvent } from './chart.ts';
import { hasFunctions, type RuleDefinition } from './definition.ts';
import { formerTopics } from './events/former-topics.ts';
import { NO_SAMPLES, RuleSampler, type SampledError } from './events/samples.ts';
import { Meter } from './meter.ts';
import type { RuleEngineParts } from './parts.ts';
import type { Plan } from './plan.ts';
import { RuleActionList, statesOf } from './rule-actions.ts';
import { triggerOf } from './trigger.ts';
import type { ActionState, RuleEvent, RuleSamples, RuleState } from './types.ts';

/** The codes of errors in the log of reasons. */
const RECORDED_AS = {
  PAYLOAD_NOT_JSON: 'payload_invalid',
  SQL_FAILED: 'function_failed',
  ACTION_FAILED: 'target_refused'
} as const satisfies Record<SampledError['code'], string>;

/** The reason in the record of a rule that was disabled. */
const DISABLED = 'it is disabled';

/** Characters of a statement that are shown. */
const MAX_SQL = 200;

/** Interval between attempts to create the actions of a rule, in milliseconds. */
const RETRY_MS = 60_000;

/** An event in the form in which a rule evaluates it and its actions receive it. */
type EventOfRule = RuleEvent & EventColumns;

/** A rule: its statement, its actions, and its actor. */
export class BrokerRule {
  readonly id: string;
  readonly isFromOptions: boolean;
  definition: RuleDefinition;
  plan: Plan;
  readonly #parts: RuleEngineParts;
  readonly #chart: RuleRun<RuleChartEvent>;
  #list: RuleActionList | undefined;
  #meter = new Meter();
  /** Number of events that WHERE had excluded when the counters were last reset. */
  #excludedBefore = 0;
  /** Undefined before the first event. */
  #sampler: RuleSampler | undefined;
  #reason: string | undefined;
  /** True if its last record is that it stopped. */
  #isStopRecorded = false;
  /** Ends the events of the rule. */
  #detach: () => void = () => undefined;
  /** Number of the last attempt to create the actions: an earlier attempt that ends later has no effect. */
  #attempt = 0;
  /** Resolves when this attempt has ended. */
  #starting: Promise<void> | undefined;
  readonly #retry = new FunctionTimer(() => void this.start());

  constructor(id: string, definition: RuleDefinition, plan: Plan, isFromOptions: boolean, parts: RuleEngineParts) {
    this.id = id;
    this.definition = definition;
    this.plan = plan;
    this.isFromOptions = isFromOptions;
    this.#parts = parts;
    this.#chart = parts.host.startChart(this.#chartActions(), id);
    if (!definition.isEnabled) this.#recordStop(DISABLED);
  }

  get actor(): ActorRef {
    return this.#chart.actor;
  }

  get order(): number {
    return this.definition.number;
  }

  get isAttached(): boolean {
    return this.#chart.state === 'connected';
  }

  /** True if the definition is stored. */
  get isPersisted(): boolean {
    return !this.isFromOptions && !hasFunctions(this.definition.actions);
  }

  get state(): RuleState {
    const { id, definition, plan, isPersisted } = this;
    const { sql, description, isEnabled, onActionFailed, createdAt } = definition;
    const state = this.#chart.state as RuleState['state'];
    return withText({
      ...{ id, sql, description, isEnabled, onActionFailed, createdAt, isPersisted, state },
      topics: plan.topics,
      reason: state === 'disconnected' ? this.#reason : undefined,
      counters: this.#meter.counters,
      sampledAt: this.#sampler?.sampledAt ?? 0,
      actions: this.#list?.states ?? statesOf(definition.actions, this.#parts.kinds)
    });
  }

  /** Create the actions and attach the rule, unless it is disabled. Resolves when it is attached, or disconnected with the reason. */
  async start(): Promise<void> {
    this.#chart.send('start');
    await this.#starting;
  }

  async #begin(attempt: number): Promise<void> {
    try {
      if (this.plan.isMissing) this.plan = await this.#parts.planner.plan(this.definition.sql);
      const list = await RuleActionList.make(this.id, this.definition, this.#parts);
      if (attempt !== this.#attempt) list.retire();
      else this.use(list);
    } catch (error) {
      if (attempt === this.#attempt) this.fail(error);
    }
  }

  /** Attach the rule with existing actions. */
  use(list: RuleActionList): void {
    this.#attempt++;
    const before = this.#list;
    if (before !== undefined) list.adoptCounters(before);
    this.#list = list;
    before?.retire();
    list.open();
    this.#reason = undefined;
    this.#chart.send('started');
    if (this.#isStopRecorded) this.#parts.host.recorded('rule_started', { rule: this.id });
    this.#isStopRecorded = false;
    this.#parts.host.emit('rule.connected', { rule: this.id });
  }

  /** Disconnect the rule, because its actions cannot be used. */
  fail(error: unknown): void {
    this.#attempt++;
    const reason = errorText(error);
    const isNew = reason !== this.#reason;
    this.#reason = reason;
    this.#list?.retire();
    this.#chart.send('failed');
    if (!isNew) return;
    this.#recordStop(reason);
    this.#parts.host.emit('rule.disconnected', { rule: this.id, reason });
  }

  /** Detach the rule. Its counters are kept. */
  disable(): void {
    this.#attempt++;
    if (this.#chart.state !== 'idle') this.#recordStop(DISABLED);
    this.#chart.send('disabled');
    this.#list?.retire();
  }

  /**
   * Replace the definition without losing an event.
   * @param list the new actions; undefined if they stay, or if the rule is disabled
   */
  change(definition: RuleDefinition, plan: Plan, list: RuleActionList | undefined): void {
    const isElsewhere = plan !== this.plan && this.isAttached;
    const hasOtherActions = definition.actions !== this.definition.actions;
    if (isElsewhere) this.#detach();
    if (plan !== this.plan) {
      this.#sampler?.clear();
      this.#excludedBefore = -this.#meter.counters.noResult; // the new statement has excluded none
    }
    if (definition.sql !== this.definition.sql) this.#recordChange();
    this.definition = definition;
    this.plan = plan;
    if (isElsewhere) this.#attach(); // in the same turn, so no event is missed
    if (list !== undefined) this.use(list);
    else if (hasOtherActions) this.#forget();
  }

  /** End the rule. */
  drop(): void {
    this.#attempt++;
    this.#parts.meters.delete(this.#meter);
    this.#sampler?.clear();
    this.#chart.send('dropped');
  }

  get samples(): RuleSamples {
    const excluded = this.#excludedBefore + this.#meter.counters.noResult;
    return { ...(this.#sampler?.samples ?? NO_SAMPLES), excluded };
  }

  /** Note that an action has failed. @param topic of the message that caused it */
  actionFailed(actionId: string, error: unknown, topic: string | undefined): void {
    const sampler = this.#sampling;
    if (sampler.actions.isOpen) sampler.addAction(actionId, error, topic);
  }

  resetCounters(): void {
    this.#parts.meters.delete(this.#meter);
    this.#excludedBefore += this.#meter.counters.noResult;
    this.#meter = new Meter();
    this.#list?.reset();
  }

  /** Continue after an action that ran before a restart and whose outcome is now known. */
  resume(...outcome: Parameters<RuleActionList['resume']>): void {
    this.#list?.resume(...outcome);
  }

  // ---------------------------------------------------------------------------------------------------------------- events

  /** Evaluate the statement for an event, and run the actions. */
  run(event: EventOfRule): void {
    const meter = this.#meter;
    const { host, meters, iterations } = this.#parts;
    const sampler = this.#sampling;
    const { plan } = this;
    if (meter.match()) meters.add(meter);
    if (sampler.inputs.isOpen) sampler.addInput(event);
    host.counted('rules.matched');
    const row = plan.usesMetadata ? withMetadata(event, this.id) : event;
    const { excluded } = sampler;
    let outputs: readonly Value[] | undefined;
    try {
      outputs = plan.run(row, undefined, excluded);
    } catch (error) {
      meter.fail();
      if (event.undecoded !== undefined) sampler.sampleUndecoded(event, plan.decoded);
      if (sampler.failed.isOpen) sampler.addFailed(event, error);
      this.#parts.failed(this.id, `rule ${this.id}`, error);
      return;
    }
    if (event.undecoded !== undefined) sampler.sampleUndecoded(event, plan.decoded);
    if (outputs === undefined) {
      meter.exclude();
      if (excluded !== undefined) sampler.addRejected(event);
      return;
    }
    meter.pass();
    const list = this.#list;
    const trigger = triggerOf(event, outputs.length);
    for (const output of outputs) {
      if (sampler.outputs.isOpen) sampler.addOutput(output);
      if (iterations.isOpen) iterations.add(this.id, output, trigger);
      list?.run(output, trigger);
    }
  }

  /** Takes the samples of the rule, from the first event or error on. */
  get #sampling(): RuleSampler {
    this.#sampler ??= new RuleSampler(this.#parts.pace, (error) => this.#record(error));
    return this.#sampler;
  }

  #recordStop(detail: string): void {
    this.#isStopRecorded = true;
    this.#parts.host.recorded('rule_stopped', { rule: this.id, detail });
  }

  /** Record the topics of the statement that is replaced. The time is in the text, because equal records would be one. */
  #recordChange(): void {
    const { host } = this.#parts;
    const detail = formerTopics(this.plan.topics, host.clock.now());
    host.recorded('rule_changed', { rule: this.id, detail });
  }

  /** Record an error, at most one of each code in 100 ms, for the question why a message did not arrive. */
  #record({ code, topic, clientId: publisher, message, actionId }: SampledError): void {
    const detail = actionId === undefined ? message : `${actionId}: ${message}`;
    this.#parts.host.recorded(RECORDED_AS[code], { rule: this.id, topic, publisher, detail });
  }

  // -------------------------------------------------------------------------------------- actions and guards of the chart

  #chartActions(): RuleActions {
    return {
      isEnabled: () => this.definition.isEnabled,
      begin: () => {
        this.#starting = this.#begin(++this.#attempt);
      },
      attach: () => this.#attach(),
      detach: () => this.#detach(),
      awaitRetry: () => this.awaitRetry(),
      cancelRetry: () => this.#parts.host.wheel.disarm(this.#retry),
      forget: () => this.#forget()
    };
  }

  #attach(): void {
    this.#detach = this.#parts.feeds.attach(this, this.plan);
  }

  /** Set a timer for the next attempt. */
  awaitRetry(): void {
    this.#parts.host.wheel.arm(this.#retry, RETRY_MS);
  }

  #forget(): void {
    this.#list?.retire();
    this.#list = undefined;
  }
}

/**
 * An upper bound of the weight of the column `metadata`: an id has at most 256 characters, each of which counts 8
 * times.
 */
const METADATA_WEIGHT = 4096;

/** An event with the column `metadata`. */
function withMetadata(event: EventOfRule, ruleId: string): EventColumns {
  const metadata = { rule_id: ruleId };
  return {
    get mostWeight() {
      return (event.mostWeight ?? Infinity) + METADATA_WEIGHT;
    },
    names: event.names,
    column: (name) => (name === 'metadata' ? metadata : event.column(name)),
    decoded: (name, members) => (name === 'metadata' ? metadata : event.decoded(name, members))
  };
}

/**
 * Let `console.log` print a rule in a few lines. The method is not enumerable: copies of the record, JSON and comparisons do not have it.
 * @returns the record
 */
function withText(rule: RuleState): RuleState {
  return Object.defineProperty(rule, INSPECT, { value: ruleText });
}

function ruleText(this: RuleState, depth: number, options: object): string {
  return consoleText('Rule', depth, options, (words) => {
    const { id, state, isEnabled, reason, sql, counters } = this;
    const why = isEnabled ? reason && `: ${inOneLine(reason)}` : ' (disabled)';
    const { matched, passed, failed, exception, noResult } = counters;
    const failures = failed === 0 ? '' : ` (${exception} with an error, ${noResult} excluded by WHERE)`;
    const actions = this.actions.length === 0 ? 'none' : namedOf(this.actions.map(actionPart));
    return [
      `${words.quoted(id)} ${words.state(state)}${why ?? ''}`,
      inOneLine(sql, MAX_SQL),
      `${words.count(matched, 'event')} matched, ${passed} passed, ${failed} failed${failures}; actions: ${actions}`
    ];
  });
}

function actionPart({ name, counters: { success, failed }, lastError }: ActionState): string {
  const error = lastError === undefined ? '' : `: ${inOneLine(lastError.message)}`;
  return `${inOneLine(name)} (${success} succeeded, ${failed} failed${error})`;
}
