import { Fault } from '../rest/index.ts';
import { faultOf } from './codes.ts';
import type { Context } from './operation.ts';

/**
 * A record that was looked up.
 * @param what the record, for the error message: `application "a"`
 * @returns with `errors: 'original'`, an empty object if it does not exist
 * @throws Fault unknownRecord
 */
export function lookedUp({ isOriginal }: Context, record: object | undefined, what: string): object {
  if (record !== undefined) return record;
  if (isOriginal) return {};
  throw new Fault('unknownRecord', `there is no ${what}`);
}

/**
 * Check that a deleted object existed; the original products do not check this.
 * @param what as for `lookedUp`
 * @throws Fault unknownRecord
 */
export function checkDeleted({ isOriginal }: Context, wasThere: boolean, what: string): void {
  if (!wasThere && !isOriginal) throw new Fault('unknownRecord', `there is no ${what}`);
}

/**
 * Process one entry of a batch.
 * @param wordOf returns the problem of the entry in one word; undefined: the whole batch fails
 * @returns `ok`, or the word as the original products print it: `{error,password}`
 */
export async function resultOf(
  run: () => Promise<unknown>,
  wordOf: (fault: Fault) => string | undefined
): Promise<string> {
  try {
    await run();
    return 'ok';
  } catch (error) {
    const fault = faultOf(error);
    const word = fault && wordOf(fault);
    if (word === undefined) throw error;
    return errorTerm(word);
  }
}

/**
 * Return one word for the fault of a batch entry: that of `wordOf`, or the name of an unknown parameter, which the
 * original products ignore.
 * @param names the parameters that `wordOf` calls `login`
 */
export function entryWord(
  { isOriginal }: Context,
  wordOf: (fault: Fault) => string | undefined,
  names: readonly string[]
): (fault: Fault) => string | undefined {
  if (isOriginal) return wordOf;
  return (fault) => {
    const word = wordOf(fault);
    const { original = 'login' } = fault;
    return word === 'login' && !names.includes(original) ? original : word;
  };
}

/** A word as the original products print an error. */
export function errorTerm(word: string): string {
  return `{error,${word}}`;
}

/**
 * Maximum length of a name in bytes: a longer one does not fit into the path of the request that deletes its record.
 */
const MAX_NAME_BYTES = 4096;

/**
 * Check the length of the name of a record that is added.
 * @throws Fault wrongParameter; never with `errors: 'original'`
 */
export function checkName({ isOriginal }: Context, parameter: string, name: string | undefined): void {
  if (name === undefined || isOriginal || Buffer.byteLength(name) <= MAX_NAME_BYTES) return;
  throw new Fault('wrongParameter', `the parameter "${parameter}" is longer than ${MAX_NAME_BYTES} bytes`, parameter);
}

/** @throws Fault emptyCredentials if one of the parameters is an empty string */
export function checkNotEmpty(parameters: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(parameters))
    if (value === '') throw new Fault('emptyCredentials', `the parameter "${name}" must not be empty`, name);
}
