/// <reference types="node" preserve="true" />
/** A source of access rules that reads them from a file. */

import { type AuthSource, parseAclFile, type SourceContext, unknownKey } from '../../../lib/adapter.ts';
import { type AccessRule, BrokerError, InvalidInput } from '../../../lib/index.ts';
import { readTextFile } from '../text-file.ts';

/** Options of `aclFile`. */
export interface AclFileOptions {
  /** Path of the file: YAML if it ends in `.yaml` or `.yml`, otherwise JSON or the documented terms. */
  readonly file: string;
  /** Name of the source at the broker. Default `acl-file`. */
  readonly name?: string;
}

/**
 * A source with the access rules of a file. The broker reads it when it starts, and again with
 * `broker.access.reload('acl-file')`.
 *
 * The file contains terms such as `{allow, {user, "ann"}, subscribe, ["sensors/#"]}.`, or a list of access rules in
 * JSON or YAML; see `parseAclFile` and `AccessRule`. The first rule that applies decides. The rules come after those of
 * all other sources and after all hooks. Actions without a rule are refused, unless `aclNomatch` is `allow`.
 *
 * A file with an error is refused as a whole: the broker does not start, or keeps the previous rules. YAML needs the
 * package `yaml`.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function aclFile(options: AclFileOptions): AuthSource<never> {
  const { file, name = 'acl-file' } = options;
  for (const key of Object.keys(options))
    if (key !== 'file' && key !== 'name') throw unknownKey(key, ['file', 'name'], 'acl-file');
  if (typeof file !== 'string' || file === '') throw new InvalidInput('OPTION_INVALID', 'file', 'a path', file);
  let context: SourceContext | undefined;
  const reload = async (): Promise<void> => {
    const rules = await readRules(file);
    context?.setRules(rules);
  };
  return {
    name,
    provides: ['authorization'],
    hasLastRules: true,
    open: (opened) => {
      context = opened;
      return reload();
    },
    reload
  };
}

/** @throws BrokerError FILE_UNREADABLE, ACL_FILE_INVALID, PACKAGE_MISSING; the message names the file */
async function readRules(file: string): Promise<AccessRule[]> {
  const text = await readTextFile(file);
  const yaml = /\.ya?ml$/.test(file) ? await loadYaml() : undefined;
  try {
    return yaml === undefined ? parseAclFile(text) : parseYaml(text, yaml);
  } catch (cause) {
    throw new BrokerError('ACL_FILE_INVALID', `${file}: ${(cause as Error).message}`, { cause });
  }
}

/** An empty file is an empty list. @throws Error */
function parseYaml(text: string, { LineCounter, parseDocument }: typeof import('yaml')): AccessRule[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [error] = document.errors;
  // the remaining lines of the message show the text around the error
  if (error !== undefined) throw new Error(error.message.split(/:?\n/, 1)[0], { cause: error });
  const list = document.toJS() as unknown;
  if (list === null) return [];
  if (!Array.isArray(list)) throw new Error('expected a list of access rules, such as "- access: deny"');
  const { items = [] } = document.contents as { readonly items?: readonly { readonly range?: [number] }[] };
  return parseAclFile(JSON.stringify(list), (at) => lines.linePos(items[at]?.range?.[0] ?? 0).line);
}

async function loadYaml(): Promise<typeof import('yaml')> {
  try {
    return await import('yaml');
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'an ACL file in YAML needs the package yaml: npm install yaml', { cause });
  }
}
