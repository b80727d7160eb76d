import { randomBytes } from 'node:crypto';
import type { StreamFunctionTools } from '../function.ts';
import { describe, isNull, isNumber, StreamFailure, type StreamValue } from '../values/values.ts';
import { CAST_TYPES, convert } from './conversion.ts';
import { streamFamily } from './family.ts';

/** Steps of 100 ns from 1582-10-15 to 1970. */
const GREGORIAN = 122_192_928_000_000_000n;

/** UUIDs of version 1: from the time, a counter, and random bytes instead of the address of a network card. */
function uuids({ now }: StreamFunctionTools): () => string {
  const random = randomBytes(8);
  random[2] |= 1;
  const [sequence, node] = [random.readUInt16BE(0) & 0x3fff, random.subarray(2).toString('hex')];
  let last = 0n;
  return () => {
    const ticks = BigInt(Math.trunc(now())) * 10_000n + GREGORIAN;
    last = ticks > last ? ticks : last + 1n;
    const time = last.toString(16).padStart(15, '0').slice(-15);
    const clock = (0x8000 | sequence).toString(16);
    return `${time.slice(7)}-${time.slice(3, 7)}-1${time.slice(0, 3)}-${clock}-${node}`;
  };
}

function property(name: StreamValue, tools: StreamFunctionTools): StreamValue {
  if (typeof name === 'string') return tools.property(name);
  throw new StreamFailure(`invalid input ${describe(name)}: must be property name of string type`);
}

function keyedState(tools: StreamFunctionTools) {
  return (key: StreamValue, type: StreamValue, otherwise: StreamValue) => {
    if (typeof key !== 'string') throw new StreamFailure(`key ${describe(key)} is not a string`);
    const value = tools.property(key);
    return isNull(value) ? otherwise : convert(value, type, (timeMs) => tools.offsetMinutes(timeMs));
  };
}

const KEYED_TYPES = CAST_TYPES.filter((type) => type !== 'bytea');

/** Maximum delay of one call of `delay`, in milliseconds: an hour. */
const MAX_DELAY = 3_600_000;

function delayFault(delayMs: StreamValue): string | undefined {
  if (isNumber(delayMs) && delayMs >= 0 && delayMs <= MAX_DELAY) return undefined;
  return `the first argument of delay is ${describe(delayMs)}: expect milliseconds, from 0 to ${MAX_DELAY}`;
}

/** Delays of successive calls add up, as if each call blocked the rule. */
function delay({ now, delayed }: StreamFunctionTools) {
  return (delayMs: StreamValue, value: StreamValue) => {
    const fault = delayFault(delayMs);
    if (fault !== undefined) throw new StreamFailure(fault);
    delayed.until = Math.max(now(), delayed.until) + Number(delayMs);
    return value;
  };
}

export const CONTEXT_FUNCTIONS = streamFamily('other', [
  {
    name: 'isnull',
    params: ['any'],
    about: 'Whether a value is null.',
    isPure: true,
    run: (value: StreamValue) => isNull(value)
  },
  {
    name: 'coalesce',
    params: ['any', 'any...'],
    about: 'The first argument that is not null.',
    isPure: true,
    run: (...args: StreamValue[]) => args.find((arg) => !isNull(arg)) ?? null
  },
  {
    name: 'bypass',
    params: ['any'],
    about: 'The argument as it is.',
    isPure: true,
    run: (value: StreamValue) => value
  },
  {
    name: 'delay',
    params: ['number', 'any'],
    about:
      'The second argument. The emission of the row waits for this number of milliseconds (at most an hour), and so do those of the rows after it, whose delays are added.',
    check: ([delayMs]) => (delayMs === undefined ? undefined : delayFault(delayMs)),
    make: delay
  },
  { name: 'newuuid', params: [], about: 'A new UUID.', make: uuids },
  {
    name: 'tstamp',
    params: [],
    about: 'Milliseconds since 1970.',
    make: (tools) => () => BigInt(Math.trunc(tools.now()))
  },
  { name: 'rule_id', params: [], about: 'Id of the rule.', make: (tools) => () => tools.ruleId },
  {
    name: 'rule_start',
    params: [],
    about: 'The time at which the rule was started, in milliseconds since 1970.',
    make: (tools) => () => BigInt(Math.trunc(tools.startedAt))
  },
  {
    name: 'last_hit_count',
    params: [],
    about: 'Number of emissions of the rule; in OVER (WHEN ...) of a window, the number of its triggers.',
    make: (tools) => () => BigInt(tools.hits.count)
  },
  {
    name: 'last_hit_time',
    params: [],
    about:
      'The time of the row or of the end of the window of the last emission, in milliseconds since 1970; 0: never.',
    make: (tools) => () => BigInt(Math.trunc(tools.hits.lastAt))
  },
  {
    name: 'last_agg_hit_count',
    params: [],
    about: 'Number of groups that passed HAVING.',
    make: (tools) => () => BigInt(tools.groupHits.count)
  },
  {
    name: 'last_agg_hit_time',
    params: [],
    about: 'The end of the window of the last group that passed HAVING, in milliseconds since 1970; 0: never.',
    make: (tools) => () => BigInt(Math.trunc(tools.groupHits.lastAt))
  },
  {
    name: 'props',
    params: ['string'],
    about: 'A property of the service.',
    ifNull: null,
    make: (tools) => (name: StreamValue) => property(name, tools)
  },
  {
    name: 'get_keyed_state',
    params: ['string', 'string', 'any'],
    about: 'A property of the service, as bigint, float, string, boolean or datetime; or else the third argument.',
    check: ([, type]) =>
      typeof type !== 'string' || KEYED_TYPES.includes(type)
        ? undefined
        : `expect one of following value for the 2nd parameter: ${KEYED_TYPES.join(', ')}`,
    make: keyedState
  }
]);
