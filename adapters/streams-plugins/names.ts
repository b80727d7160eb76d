import { InvalidInput, StateError } from '../../lib/index.ts';
import type { PluginList, PluginRecord } from './plugin-list.ts';

/** Maximum number of functions of one plugin. */
const MAX_FUNCTIONS = 1000;

/** Paths of the REST interface that would hide a plugin of this name. */
const TAKEN = ['prebuild'];

/** @throws InvalidInput PLUGIN_NAME_INVALID */
export function checkName(name: unknown): asserts name is string {
  const fail = (expected: string): never => {
    const text = typeof name === 'string' ? name.slice(0, 100) : JSON.stringify(name);
    throw new InvalidInput('PLUGIN_NAME_INVALID', 'name', expected, name, `invalid name ${text ?? ''}: ${expected}`);
  };
  if (name === undefined || name === null || (typeof name === 'string' && name.trim() === ''))
    throw new InvalidInput('PLUGIN_NAME_INVALID', 'name', 'a name', name, 'invalid name : should not be empty');
  if (typeof name !== 'string') return fail('should be a string');
  if (!/^[\w-]{1,64}$/.test(name)) return fail('should have 1 to 64 letters, digits, "_" and "-"');
  if (/^[A-Z]/.test(name)) return fail('should begin with a lower-case letter');
  if (TAKEN.includes(name)) return fail('this name is not possible');
}

/** @throws InvalidInput PLUGIN_FUNCTIONS_INVALID */
export function checkFunctions(functions: unknown): asserts functions is readonly string[] {
  const fail = (text: string, expected: string): never => {
    throw new InvalidInput('PLUGIN_FUNCTIONS_INVALID', 'functions', expected, functions, text);
  };
  const isList = Array.isArray(functions);
  if (functions === undefined || functions === null || (isList && functions.length === 0))
    return fail("property 'functions' must not be empty", 'names of functions');
  if (!isList || functions.length > MAX_FUNCTIONS)
    return fail(`property 'functions' must be a list of at most ${MAX_FUNCTIONS} names`, 'names of functions');
  const wrong = functions.find((name) => typeof name !== 'string' || !/^[A-Za-z_]\w{0,63}$/.test(name));
  if (wrong !== undefined)
    return fail(
      `property 'functions' has ${JSON.stringify(wrong)}, which is not a name of 1 to 64 letters, digits and "_"`,
      'names of functions'
    );
  const lower = functions.map((name) => name.toLowerCase());
  const double = functions.find((_, i) => lower.indexOf(lower[i]) !== i);
  if (double !== undefined) return fail(`property 'functions' has ${double} twice`, 'names that differ');
}

/** The functions of a plugin: its list, or one with its name. */
export function functionsOf({ type, name, functions }: PluginRecord): readonly string[] {
  return type === 'functions' ? (functions ?? [name]) : [];
}

/**
 * Check that no other plugin and no function in JavaScript has one of these names; statements do not distinguish case.
 * @param except the plugin or the function that may have them
 * @throws StateError FUNCTION_EXISTS
 */
export function checkFree(
  names: readonly string[],
  list: PluginList,
  except: { readonly plugin?: string; readonly script?: string }
): void {
  for (const name of names) {
    const isSame = (other: string) => other.toLowerCase() === name.toLowerCase();
    const isTaken =
      list.plugins.some((record) => record.name !== except.plugin && functionsOf(record).some(isSame)) ||
      list.scripts.some(({ id }) => id !== except.script && isSame(id));
    if (isTaken) throw functionExists(name);
  }
}

/** The error for a function whose name is taken. */
export function functionExists(name: string, cause?: unknown): StateError {
  const error = new StateError('FUNCTION_EXISTS', `function name ${name} already exists`);
  if (cause !== undefined) error.cause = cause;
  return error;
}
