import { parseJson } from '../formats/json.ts';
import { compileJsonPath, type JsonPath } from '../values/json-path.ts';
import { describe, isArray, isNull, isStruct, StreamFailure, type StreamValue } from '../values/values.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';
import { jsonOf } from './json-text.ts';

/** @throws StreamFailure */
function parsed(text: string): StreamValue {
  return parseJson(text, 'fail to parse json') as StreamValue;
}

function ofPath(
  name: string,
  about: string,
  run: (path: JsonPath, value: StreamValue) => StreamValue
): StreamFunctionEntry {
  return {
    name,
    params: ['any', 'string'],
    about,
    check: checkPath,
    make: () => {
      let text: StreamValue;
      let path: JsonPath | undefined;
      return (value: StreamValue, pathText: StreamValue) => {
        if (path === undefined || pathText !== text) {
          path = compileJsonPath(pathOf(pathText));
          text = pathText;
        }
        return run(path, value);
      };
    }
  };
}

/** The subject of a path: an array or a struct, or the value that a JSON string encodes. @throws StreamFailure */
function subjectOf(value: StreamValue): StreamValue {
  if (typeof value === 'string') return parsed(value);
  if (isArray(value) || isStruct(value)) return value;
  throw new StreamFailure(`a JSON path needs an array, a struct or JSON, but got ${describe(value)}`);
}

function pathOf(value: StreamValue): string {
  if (typeof value === 'string') return value;
  throw new StreamFailure(`invalid jsonPath, must be a string but got ${describe(value)}`);
}

function checkPath([, path]: readonly (StreamValue | undefined)[]): string | undefined {
  if (typeof path !== 'string') return undefined;
  try {
    compileJsonPath(path);
  } catch (error) {
    return (error as StreamFailure).message;
  }
  return undefined;
}

function query(path: JsonPath, value: StreamValue): StreamValue {
  return isNull(value) ? null : path.query(subjectOf(value));
}

function first(path: JsonPath, value: StreamValue): StreamValue {
  if (isNull(value)) return null;
  const result = path.query(subjectOf(value));
  if (isArray(result)) return result[0] ?? null;
  throw new StreamFailure(`query result (${describe(result)}) is not an array`);
}

function exists(path: JsonPath, value: StreamValue): boolean {
  let subject = value;
  if (typeof value === 'string')
    try {
      subject = parsed(value);
    } catch {
      return false; // as in the original, nothing is found in a string that is not valid JSON
    }
  const result = path.find(subject);
  return isArray(result) ? result.length > 0 : !isNull(result);
}

export const JSON_FUNCTIONS = streamFamily('json', [
  { name: 'to_json', params: ['any'], about: 'A value as JSON.', isPure: true, run: jsonOf },
  {
    name: 'parse_json',
    params: ['string'],
    about: 'The value that a JSON text encodes; its numbers are floats, but integers from 2^53 on are bigint.',
    ...PURE,
    run: (value: StreamValue) => {
      if (typeof value === 'string') return parsed(value);
      if (value instanceof Uint8Array) return parsed(Buffer.from(value).toString());
      throw new StreamFailure(`fail to convert ${describe(value)} to string`);
    }
  },
  ofPath(
    'json_path_query',
    'The selection of a JSON path: one value, or an array if the path may select several.',
    query
  ),
  ofPath('json_path_query_first', 'The first of the values that a JSON path selects.', first),
  ofPath('json_path_exists', 'Whether a JSON path selects anything.', exists)
]);
