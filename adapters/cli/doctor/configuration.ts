// serve ends at the first error of its configuration. The doctor is to find all of them, and to examine the rest
// meanwhile. So what an error is about is left out (a key of the config file, a variable, a flag), and the settings
// are read again, until they are valid or an error names nothing that could be left out.

import { extname } from 'node:path';
import { isPlainObject, optionName } from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';
import type { Shell } from '../command.ts';
import { MAX_CONFIG_BYTES } from '../config-text.ts';
import { gatherFlags, spelledAsFlag } from '../flags.ts';
import { CONFIG_FLAG, LIBRARY_OPTIONS, SERVE_OPTIONS } from '../serve/options.ts';
import { readServeSettings, type ServeSettings } from '../serve/settings.ts';

/** An error of the configuration. */
export interface ConfigurationProblem {
  /** The code of the error. */
  readonly code: string;
  readonly text: string;
  /** The key of the config file that was left out. */
  readonly key?: string | undefined;
}

/** All flags of `serve`. */
const SERVE_FLAGS = { ...SERVE_OPTIONS, ...LIBRARY_OPTIONS, ...CONFIG_FLAG };

const MAX_PROBLEMS = 50;

/** The configuration, without what is wrong with it. */
interface Configuration {
  readonly config: string | undefined;
  /** The content of the config file, as far as it is valid. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly settings: ServeSettings | undefined;
  readonly problems: readonly ConfigurationProblem[];
}

/** Settings that let the rest be read after an error that is about who may connect. */
const ASSUMED: Readonly<Record<string, readonly [name: string, value: string]>> = {
  ANONYMOUS_EXPOSED: ['allowAnonymous', 'true'],
  MANAGEMENT_EXPOSED: ['httpHost', '127.0.0.1']
};

/**
 * Read the configuration of `serve`, and go on after each error without what it is about.
 * @param flags the values of `gatherFlags`
 * @param maxProblems the number of errors after which it ends
 */
export async function examineConfiguration(
  flags: Readonly<Record<string, unknown>>,
  shell: Shell,
  maxProblems = MAX_PROBLEMS
): Promise<Configuration> {
  const given = { ...flags };
  const env: Record<string, string | undefined> = { ...shell.env };
  const config = (given.config ?? env.EMBERMQ_CONFIG) as string | undefined;
  const read = config === undefined ? {} : await contentOf(config, shell);
  const content = read ?? {};
  let isUnread = read === undefined;
  const problems: ConfigurationProblem[] = [];
  while (problems.length < maxProblems) {
    const keys = Object.keys(content);
    // the first attempt reads the file as it is
    const readFile: Shell['readFile'] =
      problems.length === 0 || isUnread
        ? shell.readFile
        : async (path, maxBytes) =>
            path === config ? Buffer.from(JSON.stringify(content)) : shell.readFile(path, maxBytes);
    try {
      const settings = await readServeSettings(argumentsOf(given), withParts(shell, { env, readFile }));
      return { config, content, settings, problems };
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      const problem = { code: error.code, text: error.message, key: undefined as string | undefined };
      problems.push(problem);
      const assumed = ASSUMED[error.code];
      if (assumed !== undefined && given[assumed[0]] !== assumed[1]) given[assumed[0]] = assumed[1];
      else if (isUnread && error.message.includes(`${config}`)) isUnread = false;
      else if (leaveOutSource(error, content) || leaveOut(error, content, env, given))
        given.allowAnonymous ??= 'false'; // a source of authentication may have been left out
      else break;
      problem.key = keys.find((key) => !Object.hasOwn(content, key));
    }
  }
  return { config, content, settings: undefined, problems };
}

function withParts(shell: Shell, parts: Partial<Shell>): Shell {
  return Object.create(shell, Object.getOwnPropertyDescriptors(parts)) as Shell;
}

/** The content of the config file; undefined if it cannot be read, which `serve` reports. */
async function contentOf(path: string, shell: Shell): Promise<Record<string, unknown> | undefined> {
  try {
    const text = (await shell.readFile(path, MAX_CONFIG_BYTES)).toString().replace(/^\ufeff/, '');
    const isYaml = /^\.ya?ml$/.test(extname(path));
    const { parse } = isYaml ? ((await shell.importPackage('yaml')) as { parse(text: string): unknown }) : JSON;
    const parsed = parse(text);
    return isPlainObject(parsed) ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}

/** Leave out the sources of authentication that need a package which is missing. @returns false if there are none */
function leaveOutSource({ code, message }: BrokerError, content: Record<string, unknown>): boolean {
  const { auth } = content;
  if (code !== 'PACKAGE_MISSING' || !Array.isArray(auth)) return false;
  content.auth = auth.filter((entry: { kind?: unknown } | null) => !message.includes(`"${entry?.kind}"`));
  return (content.auth as unknown[]).length < auth.length;
}

/** Leave out what an error is about. @returns false if that is not known */
function leaveOut(error: BrokerError, ...sources: readonly Record<string, unknown>[]): boolean {
  const { message, field = '' } = error as BrokerError & { readonly field?: string };
  const isField = (name: string) => field === name || field.startsWith(`${name}.`);
  const isMentioned = (name: string) => begins(message, name) || message.includes(`"${name}"`);
  const isOfZone = (name: string) => {
    const [, zone, setting] = /^zones\.([^.]+)\.(.+)$/.exec(name) ?? [];
    return zone !== undefined && message.includes(`zones.${zone}`) && message.includes(`"${setting}"`);
  };
  for (const isAbout of [isOfZone, isMentioned, isField])
    for (const source of sources)
      for (const key of Object.keys(source)) {
        const name = optionName(SERVE_FLAGS, key) ?? key.replace(/^zone\./, 'zones.');
        const isVariable = key.startsWith('EMBERMQ_');
        if (![key, ...(isVariable ? [] : [name, spelledAsFlag(name)])].some(isAbout)) continue;
        delete source[key];
        return true;
      }
  return false;
}

/** Tell whether a message begins with a name, which may follow the name of a file. */
function begins(message: string, name: string): boolean {
  const at = message.startsWith(name) ? 0 : message.indexOf(`: ${name}`) + 2;
  return (at !== 1 || message.startsWith(name)) && !/[\w-]/.test(message[at + name.length] ?? '');
}

/** Write the values of flags as a command line. */
function argumentsOf(given: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(given).flatMap(([name, value]) =>
    [value].flat().map((one) => `${spelledAsFlag(name)}=${String(one)}`)
  );
}

/** Parse the flags of `serve` and those of the doctor. @throws InvalidInput FLAG_UNKNOWN, FLAG_INVALID */
export function gatherServeFlags<T extends object>(own: T, args: readonly string[]) {
  const { given, words } = gatherFlags({ ...SERVE_FLAGS, ...own }, args);
  const isOwn = (name: string) => Object.hasOwn(own, name);
  const split = (mine: boolean) => Object.fromEntries(Object.entries(given).filter(([name]) => isOwn(name) === mine));
  return { own: split(true), serve: split(false), words };
}
