import { InvalidInput } from '../base/errors.ts';
import { checkObject } from '../base/fields.ts';
import { inSlices, WorkTime } from '../base/slices.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import { decodeJson, encodeJson } from '../sql/json.ts';
import { statementError } from '../sql/sql-error.ts';
import { Float, type Value, type ValueObject } from '../sql/values.ts';
import { matches } from '../topics/topic.ts';
import { PlainEvent } from './events/event.ts';
import type { RuleEventName } from './events/event-name.ts';
import { ruleEventInfos, testColumns } from './events/test-columns.ts';
import { jsonHints } from './hints.ts';
import type { RulesHost } from './host.ts';
import type { Plan, Planner } from './plan.ts';
import type { RuleEventInfo, RuleFunctionInfo, RuleTest, RuleValidation } from './types.ts';

/** Time limit of a test, in milliseconds. */
const TEST_MS = 1_000;

/** The rule id in the column `metadata` of a test. */
const TEST_ID = 'test';

/**
 * Evaluate a statement for an event that is given by its columns. The generator yields after each element of FOREACH.
 * @param defaults values of the columns that are not given
 * @throws SqlFailure; InvalidInput RULE_INVALID
 */
export function* testSteps(
  plan: Plan,
  given: Readonly<Record<string, unknown>>,
  defaults: ValueObject
): Generator<void, RuleTest> {
  checkObject(given, 'event');
  const { isForeach } = plan;
  const columns = columnsOf({ metadata: { rule_id: TEST_ID }, ...defaults, ...given });
  const hints = [...plan.hints, ...jsonHints(plan.decoded, columns)];
  if (plan.events.size === 0 && 'topic' in given) {
    const topic = typeof given.topic === 'string' ? given.topic : '';
    if (!plan.filters.some((filter) => matches(filter, topic)))
      return { result: 'topic', isForeach, outputs: [], hints };
  }
  const names = Object.keys(columns).filter((name) => name !== 'metadata' || name in given);
  const outputs = yield* plan.steps(new PlainEvent(columns.event as RuleEventName, columns, names), hints);
  return { result: outputs === undefined ? 'where' : 'matched', isForeach, outputs: outputs ?? [], hints };
}

/** Convert plain data to values of statements. */
function columnsOf(given: object): ValueObject {
  const columns: Record<string, Value> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const isPlain = typeof value !== 'object' || value === null || value instanceof Uint8Array;
    columns[name] = isPlain || value instanceof Float ? checked(name, value) : decodeJson(jsonOf(name, value));
  }
  return columns;
}

function checked(name: string, value: unknown): Value {
  if (typeof value !== 'function' && typeof value !== 'symbol') return value as Value;
  throw new InvalidInput('RULE_INVALID', name, 'a value of a column', value);
}

function jsonOf(name: string, value: object): string {
  try {
    return encodeJson(value as Value); // integers of any size keep their digits
  } catch {
    throw new InvalidInput('RULE_INVALID', name, 'a value that JSON can represent', value);
  }
}

/** The description of a function. */
export function functionInfo({ name, family, params, returns, about }: SqlFunction): RuleFunctionInfo {
  return { name, family, params, returns, about };
}

/** Answers about statements and their language, without a rule. */
export class RuleLanguage {
  readonly #planner: Planner;
  readonly #host: Pick<RulesHost, 'node' | 'clock' | 'nextSlice'>;

  constructor(planner: Planner, host: Pick<RulesHost, 'node' | 'clock' | 'nextSlice'>) {
    this.#planner = planner;
    this.#host = host;
  }

  async test(sql: string, event: Readonly<Record<string, unknown>> = {}): Promise<RuleTest> {
    const { node, clock } = this.#host;
    const time = new WorkTime(clock, TEST_MS);
    const plan = await this.#planner.plan(sql, time);
    const defaults = testColumns(plan.topics[0], { node, now: clock.now() });
    return inSlices(testSteps(plan, event, defaults), {
      time,
      pause: () => this.#host.nextSlice(),
      tooLong: () => {
        const text = `the test was stopped after ${TEST_MS} ms: give it a shorter list, or make the statement cheaper`;
        return new InvalidInput('RULE_INVALID', 'event', `a test of at most ${TEST_MS} ms`, undefined, text);
      }
    });
  }

  async validate(sql: string): Promise<RuleValidation> {
    try {
      const { filters, events, columns, topics, hints, isForeach } = await this.#planner.plan(sql);
      const messages: readonly RuleEventName[] = filters.length === 0 ? [] : ['message.publish'];
      return { errors: [], hints, isForeach, topics, events: [...messages, ...events], columns };
    } catch (error) {
      return { errors: [statementError(error)], hints: [], isForeach: false, topics: [], events: [], columns: [] };
    }
  }

  async functions(): Promise<RuleFunctionInfo[]> {
    return [...this.#planner.functions.values()].map(functionInfo);
  }

  async events(): Promise<RuleEventInfo[]> {
    return ruleEventInfos();
  }
}
