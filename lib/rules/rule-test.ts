import { InvalidInput } from '../base/errors.ts';
import { checkObject } from '../base/options-table.ts';
import { decodeJson, encodeJson } from '../sql/json.ts';
import { Float, type Value, type ValueObject } from '../sql/values.ts';
import { matches } from '../topics/topic.ts';
import { PlainEvent } from './events/event.ts';
import type { RuleEventName } from './events/event-name.ts';
import type { Plan } from './plan.ts';
import type { RuleTest } from './types.ts';

/**
 * Evaluate a statement for an event that is given by its columns.
 * @param defaults the columns that are not given
 * @throws SqlFailure; InvalidInput RULE_INVALID
 */
export function testPlan(plan: Plan, given: Readonly<Record<string, unknown>>, defaults: ValueObject): RuleTest {
  checkObject(given, 'event');
  const { isForeach } = plan;
  const columns = columnsOf({ ...defaults, ...given });
  if (plan.events.size === 0 && 'topic' in given) {
    const topic = typeof given.topic === 'string' ? given.topic : '';
    if (!plan.filters.some((filter) => matches(filter, topic))) return { result: 'topic', isForeach, outputs: [] };
  }
  const outputs = plan.run(new PlainEvent(columns.event as RuleEventName, columns));
  return outputs === undefined
    ? { result: 'where', isForeach, outputs: [] }
    : { result: 'matched', isForeach, outputs };
}

/** Plain data as values of statements. */
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
