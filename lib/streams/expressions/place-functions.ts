import { SqlError } from '../../sql/sql-error.ts';
import type { Call, Expression } from '../../sql/tree.ts';
import { type Evaluate, type Frame, GroupRow, type WindowRange } from '../values/tuple.ts';
import { isNull, isStruct, member, type StreamValue } from '../values/values.ts';
import type { NameScope } from './scope.ts';

/** The metadata keys that `mqtt()` reads. `meta()` reads any key. */
const MQTT_KEYS = ['topic', 'messageid', 'qos', 'retain', 'clientid', 'username'];

type Make = (call: Call, scope: NameScope) => Evaluate;

/** Functions that read the position of a row, its window or the metadata of its source, instead of values. */
const PLACE_FUNCTIONS: Readonly<Record<string, Make>> = {
  window_start: ofRange((range) => range.start),
  window_end: ofRange((range) => range.end),
  window_trigger: ofRange((range) => range.trigger),
  row_number: ofFrame((frame) => frame.rowNumber),
  event_time: (call, scope) => {
    expectArguments(0, call, scope);
    scope.row();
    const frame = scope.tools?.frame;
    // for a group, the end of its window
    return (tuple) =>
      BigInt(Math.trunc(tuple instanceof GroupRow ? (frame?.range?.end ?? tuple.timestamp) : tuple.timestamp));
  },
  meta: metaCall,
  mqtt: (call, scope) => {
    expectArguments(1, call, scope);
    const reference = referenceOf(call.args[0], scope);
    if (reference === undefined || reference.keys.length !== 1 || !MQTT_KEYS.includes(reference.keys[0].toLowerCase()))
      throw new SqlError(
        'Parameter of mqtt function can be only topic or messageid.',
        scope.text,
        call.args[0].start,
        `it can also be ${MQTT_KEYS.slice(2).join(', ')}; meta() reads all keys`
      );
    return readMeta(reference, scope);
  }
};

/** The names of these functions. */
export const PLACE_FUNCTION_NAMES: readonly string[] = Object.keys(PLACE_FUNCTIONS);

/** @param name in lower case */
export function isPlaceFunction(name: string): boolean {
  return Object.hasOwn(PLACE_FUNCTIONS, name);
}

/** Compile a call of such a function. @throws SqlError for arguments that it does not accept */
export function placeFunction(name: string, call: Call, scope: NameScope): Evaluate {
  return PLACE_FUNCTIONS[name](call, scope);
}

function ofRange(read: (range: WindowRange) => number): Make {
  return ofFrame(({ range }) => range && read(range));
}

function ofFrame(read: (frame: Frame) => number | undefined): Make {
  return (call, scope) => {
    expectArguments(0, call, scope);
    scope.frame();
    const frame = scope.tools?.frame;
    if (frame === undefined) return () => null;
    return () => {
      const number = read(frame);
      return number === undefined ? null : BigInt(Math.trunc(number));
    };
  };
}

/** A reference to metadata keys, of one source or of any. */
interface MetaReference {
  readonly source: number | undefined;
  readonly keys: readonly string[];
}

function metaCall(call: Call, scope: NameScope): Evaluate {
  expectArguments(1, call, scope);
  const [arg] = call.args;
  if (arg.type === 'wildcard') {
    const source = arg.stream === undefined ? undefined : scope.sourceOf(arg.stream);
    if (arg.stream !== undefined && source === undefined)
      throw new SqlError(`unknown source ${arg.stream}`, scope.text, arg.start);
    scope.meta(source, undefined);
    return (tuple) => tuple.metadata(source);
  }
  const reference = referenceOf(arg, scope);
  if (reference === undefined)
    throw new SqlError(
      'Expect meta reference type for 1 parameter of function meta.',
      scope.text,
      arg.start,
      'the argument is a name without quotes: meta(topic), meta(demo.topic), meta(device->id), meta(*)'
    );
  return readMeta(reference, scope);
}

/** Parse `topic`, `demo.topic` or `device->id`; undefined for other expressions. */
function referenceOf(arg: Expression, scope: NameScope): MetaReference | undefined {
  if (arg.type !== 'path') return undefined;
  const keys = [arg.name];
  for (const step of arg.steps) {
    if (step.type !== 'key') return undefined;
    keys.push(step.key);
  }
  const [first] = arg.steps;
  const isQualified = first?.type === 'key' && first.isArrow !== true;
  const source = isQualified ? scope.sourceOf(arg.name) : undefined;
  return { source, keys: source === undefined ? keys : keys.slice(1) };
}

function readMeta({ source, keys }: MetaReference, scope: NameScope): Evaluate {
  const [key, ...below] = keys;
  scope.meta(source, key);
  const read: Evaluate = source === undefined ? (tuple) => tuple.meta(key) : (tuple) => tuple.metaOf(source, key);
  if (below.length === 0) return read;
  return (tuple) => below.reduce<StreamValue>(keyOf, read(tuple));
}

function keyOf(value: StreamValue, key: string): StreamValue {
  return !isNull(value) && isStruct(value) ? member(value, key) : null;
}

function expectArguments(count: number, { args, start }: Call, { text }: NameScope): void {
  if (args.length !== count) throw new SqlError(`Expect ${count} arguments but found ${args.length}.`, text, start);
}
