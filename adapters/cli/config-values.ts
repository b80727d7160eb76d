import { InvalidInput } from '../../lib/index.ts';
import { readFileFor, type Shell } from './command.ts';
import { configText } from './config-text.ts';

/** A value that was inserted into options. */
export interface Inserted {
  readonly text: string;
}

/** Maximum size of a file of `fromFile`. */
const MAX_VALUE_BYTES = 1_048_576;
/** Maximum nesting of lists and objects in an option. */
const MAX_DEPTH = 64;

/**
 * Replace each object `{ "fromFile": PATH }` and `{ "fromEnv": NAME }` among options by the content of the file,
 * without its trailing newline, or by the value of the environment variable. A config file therefore need not contain
 * passwords.
 * @param place the place of the options, for messages
 * @param isTemplate true if the string at a path, such as `acl.headers.Authorization`, is a template: percent signs are
 * doubled there
 * @returns the options, and the inserted values in order
 * @throws BrokerError FILE_UNREADABLE; InvalidInput OPTION_INVALID, CONFIG_INVALID; the message names the place
 */
export async function filledOptions(
  options: Readonly<Record<string, unknown>>,
  place: string,
  shell: Shell,
  isTemplate: (path: string) => boolean = () => false
): Promise<{ filled: Record<string, unknown>; inserted: Inserted[] }> {
  const inserted: Inserted[] = [];
  const fill = async (value: unknown, path: string, depth: number): Promise<unknown> => {
    if (typeof value !== 'object' || value === null) return value;
    const [option] = path.split(/[.[]/, 1);
    const expected = `at most ${MAX_DEPTH} nested lists and objects`;
    if (depth > MAX_DEPTH) throw new InvalidInput('OPTION_INVALID', `${place}.${option}`, expected, 'more');
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const [at, item] of value.entries()) items.push(await fill(item, `${path}[${at}]`, depth + 1));
      return items;
    }
    const entries = Object.entries(value);
    const [[name, reference] = []] = entries;
    if (entries.length === 1 && (name === 'fromFile' || name === 'fromEnv')) {
      const text = await READERS[name](reference, `${place}.${path}.${name}`, shell);
      const written = isTemplate(path) ? text.replaceAll('%', '%%') : text;
      inserted.push({ text: written });
      return written;
    }
    return fillAll(entries, `${path}.`, depth + 1);
  };
  const fillAll = async (entries: [string, unknown][], prefix: string, depth: number) => {
    const filled: [string, unknown][] = [];
    for (const [key, item] of entries) filled.push([key, await fill(item, prefix + key, depth)]);
    return Object.fromEntries(filled);
  };
  return { filled: await fillAll(Object.entries(options), '', 1), inserted };
}

const READERS = {
  fromFile: async (path: unknown, field: string, shell: Shell): Promise<string> => {
    if (typeof path !== 'string' || path === '') throw new InvalidInput('OPTION_INVALID', field, 'a path', path);
    const bytes = await readFileFor(shell, path, MAX_VALUE_BYTES).catch((error: Error) => {
      throw new InvalidInput('FILE_UNREADABLE', field, 'a file', path, `${field}: ${error.message}`);
    });
    const text = configText(`${field}: ${path}`, bytes).replace(/\r?\n$/, '');
    if (text === '') throw new InvalidInput('OPTION_INVALID', field, 'a file that is not empty', path);
    return text;
  },
  fromEnv: async (name: unknown, field: string, { env }: Shell): Promise<string> => {
    const expected = 'the name of an environment variable that is set';
    const text = typeof name === 'string' ? env[name] : undefined;
    if (text === undefined || text === '') throw new InvalidInput('OPTION_INVALID', field, expected, name);
    return text;
  }
};
