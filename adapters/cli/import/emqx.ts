// Most settings of EMQX are accepted in config files under their own names, so they are written as they are, and
// reading the config file decides which ones are valid; the table of moved settings has the reasons for the others.
// Only what is a list here is converted: listeners, subscriptions and rewrite rules.

import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseAclFile } from '../../../lib/adapter.ts';
import { readFileFor, type Shell } from '../command.ts';
import { Draft, entryOf, located, type SourceLine } from './draft.ts';
import { EmqxListeners, inFolder } from './emqx-listeners.ts';

/** Levels of the log, by those of EMQX. */
const LEVELS: Readonly<Record<string, string>> = {
  debug: 'debug',
  info: 'info',
  notice: 'info',
  warning: 'warn',
  error: 'error',
  critical: 'error',
  alert: 'error',
  emergency: 'error'
};

const SUBSCRIPTION_KEYS: ReadonlySet<string> = new Set(['topic', 'qos', 'nl', 'rap', 'rh']);

/** Names that EMQX gives its settings. Other ones, such as `listeners`, are those of options here. */
const SETTING_NAME = /^[a-z][a-z\d]*[._]/;

/** Convert `emqx.conf`, with the ACL file that it names. */
export async function importEmqx(path: string, shell: Shell): Promise<Draft> {
  const draft = new Draft();
  const listeners = new EmqxListeners();
  const subscriptions = new Map<string, { readonly lines: SourceLine[]; readonly entry: Record<string, unknown> }>();
  let isDenying = false;
  for (const line of await linesIn(path, shell, draft)) {
    const { name, value } = line;
    const [, number, key] = /^module\.subscription\.(\d+)\.(\w+)$/.exec(name) ?? [];
    const [, kind] = /^module\.rewrite\.(?:(pub|sub)\.)?rule\.\d+$/.exec(name) ?? [];
    const level = entryOf(LEVELS, value);
    if (listeners.read(line, draft)) continue;
    if (number !== undefined && SUBSCRIPTION_KEYS.has(key)) {
      const one = subscriptions.get(number) ?? { lines: [], entry: {} };
      subscriptions.set(number, one);
      one.lines.push(line);
      one.entry[key] = /^\d+$/.test(value) ? Number(value) : value;
    } else if (/^module\.rewrite\.(?:(pub|sub)\.)?rule\.\d+$/.test(name)) addRewrite(line, kind, draft);
    else if (name === 'acl_file') isDenying = !(await addAclFile(line, path, shell, draft));
    else if (name === 'node.data_dir')
      draft.refuse(line, 'the data of EMQX cannot be read; the store is in the folder dataDir, ./data by default');
    else if (name === 'log.level' && level !== undefined) draft.set(line, 'logLevel', level);
    else if (!SETTING_NAME.test(name)) draft.refuse(line, 'is not the name of a setting of EMQX');
    else draft.set(line, name, typed(value));
  }
  for (const { lines, entry } of subscriptions.values()) {
    if (typeof entry.topic === 'string') draft.append(lines, 'autoSubscriptions', entry);
    else for (const line of lines) draft.refuse(line, 'the subscription has no topic');
  }
  const named = Object.keys(draft.config).flatMap((key) => /^zone\.([^.]+)\./.exec(key)?.[1] ?? []);
  listeners.write(new Set(['external', 'internal', ...named]), draft);
  Object.assign(draft.config, { mqttPort: 'off', wsPort: 'off' });
  if (isDenying) denyAll(draft);
  addDefaults(draft);
  return draft;
}

/** Convert an ACL file alone. */
export async function importAclFile(path: string, shell: Shell): Promise<Draft> {
  const draft = new Draft();
  const line = { file: path, line: 1, text: path, name: 'acl_file', value: path };
  if (!(await addAclFile(line, path, shell, draft))) denyAll(draft);
  addDefaults(draft);
  return draft;
}

/** Allow nothing, whatever the file says. */
function denyAll(draft: Draft): void {
  const why = 'the access rules cannot be read, so nothing is allowed';
  const keys = Object.keys(draft.config).filter((key) => /^(zone\.[^.]+\.)?(acl_nomatch|aclNomatch)$/.test(key));
  for (const key of keys) draft.leaveOut(key, why);
  draft.add('acl_nomatch', 'deny', why);
}

function addDefaults(draft: Draft): void {
  if (!('allow_anonymous' in draft.config))
    draft.add('allow_anonymous', true, 'the default of EMQX; false admits only users of a source of authentication');
  if ('aclFile' in draft.config && !('acl_nomatch' in draft.config))
    draft.add('acl_nomatch', 'allow', 'the default of EMQX; deny allows only what a rule allows');
}

/** The lines of a file, with those of the files of `include` in their place. @param open the files that are being read */
async function linesIn(path: string, shell: Shell, draft: Draft, open: readonly string[] = []): Promise<SourceLine[]> {
  const lines: SourceLine[] = [];
  for (const line of splitLines(path, (await readFileFor(shell, path)).toString(), draft)) {
    if (line.name !== 'include') {
      lines.push(line);
      continue;
    }
    const unread: string[] = [];
    for (const file of await includedBy(line, open[0] ?? path)) {
      const isCycle = resolve(file) === resolve(path) || open.includes(resolve(file));
      const included = isCycle
        ? new Error(`${file} includes itself`)
        : await linesIn(file, shell, draft, [...open, resolve(path)]).catch((error: Error) => error);
      if (included instanceof Error) unread.push(included.message);
      else lines.push(...included);
    }
    if (unread.length > 0) draft.refuse(line, unread.join('; '));
  }
  return lines;
}

/** The files that a line `include FILE` or `include FOLDER/*.conf` names. */
async function includedBy({ file, value }: SourceLine, main: string): Promise<string[]> {
  const found = (name: string) => located(located(name, file), main);
  const path = inFolder(value.replace(/^"(.*)"$/, '$1'));
  const [, folder, end] = /^(.*)\/\*(\.\w+)$/.exec(path) ?? [];
  if (folder === undefined) return [found(path)];
  const at = found(folder);
  const names = await readdir(at).catch(() => undefined);
  if (names === undefined) return [at]; // reading it tells why
  return names
    .filter((name) => name.endsWith(end))
    .sort()
    .map((name) => join(at, name));
}

function splitLines(file: string, text: string, draft: Draft): SourceLine[] {
  return text.split(/\r?\n/).flatMap((raw, at) => {
    const whole = raw.replace(/\s+#+(\s.*)?$/, '').trim();
    if (whole === '' || whole.startsWith('#')) return [];
    const [, name, value] = /^([^\s=]+)\s*=\s*(.*)$/.exec(whole) ?? [];
    if (name !== undefined) return [{ file, line: at + 1, text: whole, name, value }];
    const [, first, rest] = /^(\S+)\s*(.*)$/.exec(whole) as unknown as [string, string, string];
    const line = { file, line: at + 1, text: whole, name: first, value: rest };
    if (first === 'include') return [line];
    draft.refuse(line, 'expected "name = value"');
    return [];
  });
}

function typed(value: string): unknown {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  return value === 'true' || value === 'false' ? value === 'true' : value;
}

/** Add `filter regular-expression target`. */
function addRewrite(line: SourceLine, kind: string | undefined, draft: Draft): void {
  const [filter, pattern, target, ...more] = line.value.split(/\s+/);
  if (target === undefined || more.length > 0)
    draft.refuse(line, 'expected a topic filter, a regular expression and a topic');
  else {
    const on = { pub: 'publish', sub: 'subscribe' }[kind ?? ''];
    draft.append([line], 'rewrite', { filter, pattern, target, ...(on !== undefined && { on }) });
  }
}

/** Use an ACL file as it is. @returns false if it cannot be read */
async function addAclFile(line: SourceLine, config: string, shell: Shell, draft: Draft): Promise<boolean> {
  const path = line.value === config ? config : located(inFolder(line.value), config);
  try {
    parseAclFile((await readFileFor(shell, path)).toString());
    draft.set(line, 'aclFile', path);
    return true;
  } catch (error) {
    draft.leaveOut('aclFile', `line ${line.line} sets it again`);
    draft.refuse(line, (error as Error).message);
    return false;
  }
}
