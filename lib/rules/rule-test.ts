import { InvalidInput } from '../base/errors.ts';
import { checkObject } from '../base/fields.ts';
import { decodeJson, encodeJson } from '../sql/json.ts';
import { Float, type Value, type ValueObject } from '../sql/values.ts';
import { matches } from '../topics/topic.ts';
import { PlainEvent } from './events/event.ts';
import type { RuleEventName } from './events/event-name.ts';
import { jsonHints } from './hints.ts';
import type { Plan } from './plan.ts';
import type { RuleTest } from './types.ts';

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
