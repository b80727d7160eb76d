import { InvalidInput } from '../base/errors.ts';
import { decodeJson, encodeJson, stringOf } from '../sql/json.ts';
import { isObject, own, type Value } from '../sql/values.ts';
import { checkTopicName } from '../topics/topic.ts';

/** The texts of a template between its placeholders, and the paths of these. There is one string more than paths. */
interface Parts {
  readonly texts: readonly string[];
  readonly paths: readonly (readonly string[])[];
}

/**
 * Compile a template: `${name}` and `${a.b.c}` stand for values of the output of a rule.
 *
 * A name may contain any characters except dots and braces: `${device-id}`. A path leads through objects and JSON text.
 * An absent value yields `undefined`, a list or an object yields JSON. `${item}` is the output itself unless that is an
 * object with an `item`, so that it is the element in a FOREACH without DO.
 * @param encode changes the text of each value, for example to escape it
 * @param missing called with the name of each value that is absent
 * @returns a function that throws SqlFailure if a value has too many levels
 */
export function compileTemplate(
  text: string,
  encode?: (value: string) => string,
  missing?: (name: string) => void
): (output: Value) => string {
  const { texts, paths } = split(text);
  if (paths.length === 0) return () => text;
  return (output) => {
    const lookup = new Lookup(output);
    let result = texts[0];
    for (let at = 0; at < paths.length; at++) {
      const found = lookup.get(paths[at]);
      if (found === undefined) missing?.(paths[at].join('.'));
      const value = stringOf(found);
      result += (encode === undefined ? value : encode(value)) + texts[at + 1];
    }
    return result;
  };
}

/** As `compileTemplate`. If the template is a single placeholder, such as `${payload}`, bytes that are not UTF-8 are not changed. */
export function compileBytes(text: string): (output: Value) => string | Buffer {
  const { texts, paths } = split(text);
  const isPlain = paths.length === 1 && texts.every((part) => part === '');
  if (!isPlain) return compileTemplate(text);
  const [path] = paths;
  return (output) => {
    const value = new Lookup(output).get(path);
    return value instanceof Uint8Array ? Buffer.from(value) : stringOf(value); // a copy, because the bytes may be part of a chunk
  };
}

/** As `compileBytes`, for actions that forward: without a template, the whole output is sent as JSON. */
export function compilePayload(text: string | undefined): (output: Value) => string | Buffer {
  return text === undefined || text === '' ? encodeJson : compileBytes(text);
}

/**
 * As `compileTemplate`, for topics. Only the template determines whether a topic begins with `$`, so that data from a
 * device cannot turn a message into one of `$SYS`.
 * @param param the parameter, for messages
 * @param prefix precedes the topic
 * @param missing called with the name of each value that is absent
 * @returns a function that throws InvalidInput TOPIC_NAME_INVALID
 */
export function compileTopic(
  param: string,
  text: string,
  prefix = '',
  missing?: (name: string) => void
): (output: Value) => string {
  const textOf = compileTemplate(text, undefined, missing);
  const { texts, paths } = split(text);
  const isFirstLevelFixed = paths.length === 0 || (prefix + texts[0]).includes('/');
  return (output) => {
    const topic = prefix + textOf(output);
    const fault = checkTopicName(topic);
    const fail = (expected: string, why?: string) =>
      new InvalidInput('TOPIC_NAME_INVALID', param, expected, topic, why);
    if (fault !== undefined) throw fail('a topic name', fault);
    if (topic.startsWith('$') && !isFirstLevelFixed)
      throw fail('a topic that begins with "$" only if the first level of the template does');
    return topic;
  };
}

function split(text: string): Parts {
  const texts: string[] = [];
  const paths: string[][] = [];
  let end = 0;
  for (const { 0: whole, 1: path, index } of text.matchAll(/\$\{([^{}]+)\}/g)) {
    texts.push(text.slice(end, index));
    paths.push(path.split('.'));
    end = index + whole.length;
  }
  texts.push(text.slice(end));
  return { texts, paths };
}

/** Finds the values of paths in one output, and decodes JSON text once for all paths that lead through it. */
class Lookup {
  readonly #output: Value;
  #text: string | undefined = undefined;
  #decoded: Value = undefined;

  constructor(output: Value) {
    this.#output = output;
  }

  get(path: readonly string[]): Value {
    let value = this.#output;
    for (let at = isElement(value, path[0]) ? 1 : 0; at < path.length; at++) {
      if (typeof value === 'string') value = this.#decode(value);
      value = isObject(value) ? own(value, path[at]) : undefined;
    }
    return value;
  }

  #decode(text: string): Value {
    if (text !== this.#text) {
      this.#text = text;
      this.#decoded = decodeJson(text);
    }
    return this.#decoded;
  }
}

/** Check whether the first step of a path refers to the output itself. */
function isElement(output: Value, step: string): boolean {
  return step === 'item' && !(isObject(output) && Object.hasOwn(output, 'item'));
}
