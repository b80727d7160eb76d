// The config file is read as serve would read it before it is written: what is not valid is left out and listed, so
// the file that is written can be used.

import { open, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { BrokerError, createBroker, InvalidInput } from '../../../lib/index.ts';
import { bridge } from '../../bridge/index.ts';
import { type Command, log, oneLine, readFileFor, type Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';
import { examineConfiguration } from '../doctor/configuration.ts';
import { describeFlags, flag, readFlags } from '../flags.ts';
import type { Draft } from './draft.ts';
import { importAclFile, importEmqx } from './emqx.ts';
import { importMosquitto } from './mosquitto.ts';

/** The flags of the command. */
export const IMPORT_FLAGS = {
  from: flag(
    'choice',
    undefined as 'mosquitto' | 'emqx' | undefined,
    'the broker of FILE. Default: decided by its name and content',
    {
      choices: ['mosquitto', 'emqx'],
      value: 'mosquitto|emqx'
    }
  ),
  out: flag('string', 'embermq.json', 'the config file to write; it must not exist', { value: 'FILE' }),
  json: flag(
    'boolean',
    false,
    'print the lines that are not taken over as a list of objects with file, line, text and reason'
  )
};

/** The rules of an ACL file of EMQX. */
const ERLANG_TERMS = /^\s*\{\s*(allow|deny)\s*,/m;
/** The first line of a section, such as `node {`. */
const SECTIONS = /^\s*[\w.]+\s*=?\s*\{\s*$/m;
/** A file that only its owner can read: it may have passwords of bridges. */
const FILE_MODE = 0o600;
/** Enough for all settings that EMQX has. */
const MAX_PROBLEMS = 10_000;

/** `embermq import`: make a config file from the files of another broker. */
export const importCommand: Command = {
  summary: 'make a config file from mosquitto.conf or emqx.conf',
  completed: () => ({ flags: IMPORT_FLAGS, files: 'file' }),
  help: () => `usage: embermq import FILE [flags]

Writes a config file for "embermq serve --config" from the config file of another broker: mosquitto.conf of mosquitto, with its password and
ACL files, or emqx.conf or acl.conf of EMQX 3 and 4. No file is overwritten. Access rules of mosquitto are written to a second file. Every line that
is not taken over is printed with the reason, and so is every setting that was added.

${describeFlags(IMPORT_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(IMPORT_FLAGS, args);
    const [path, ...more] = words;
    if (path === undefined || more.length > 0)
      throw new InvalidInput(
        'FLAG_INVALID',
        'FILE',
        'one file',
        more[0],
        'import needs one file: embermq import mosquitto.conf'
      );
    const out = flags.out as string;
    const draft = await convert(path, flags.from, shell);
    const rules = draft.files.get('.acl.json');
    const rulesPath = `${out.replace(/\.json$/, '')}.acl.json`;
    if (rules !== undefined) draft.config.aclFile = rulesPath;
    const isUsable = await verify(
      draft,
      { [out]: '', ...(rules === undefined ? {} : { [rulesPath]: rules }) },
      out,
      shell
    );
    await writeNew([
      [out, `${JSON.stringify(draft.config, undefined, 2)}\n`],
      ...(rules === undefined ? [] : [[rulesPath, rules] as const])
    ]);
    shell.stdout.write(flags.json ? `${JSON.stringify(draft.refused, undefined, 2)}\n` : texts(draft));
    const count = draft.refused.length;
    log(
      shell,
      `${out} was written; ${count === 1 ? '1 line was' : `${count} lines were`} not taken over. Check it: embermq doctor --config ${out}. ` +
        'Relative paths in it apply in this folder: run the broker in it, or make them absolute'
    );
    return isUsable ? 0 : 1;
  }
};

async function convert(path: string, from: string | undefined, shell: Shell): Promise<Draft> {
  const text = (await readFileFor(shell, path)).toString();
  const isTerms = ERLANG_TERMS.test(text);
  if (!isTerms && from !== 'mosquitto' && SECTIONS.test(text)) {
    const expected = 'a file of mosquitto, or of EMQX 3 or 4';
    const message = `${path} has sections, as those of EMQX 5 have, whose settings are others: import reads mosquitto.conf, and emqx.conf of EMQX 3 and 4`;
    throw new InvalidInput('CONFIG_INVALID', 'FILE', expected, path, message);
  }
  const kind = from ?? (isTerms || /^emqx/.test(basename(path)) || isAssignments(text) ? 'emqx' : 'mosquitto');
  if (kind === 'mosquitto') return importMosquitto(path, shell);
  return isTerms ? importAclFile(path, shell) : importEmqx(path, shell);
}

/** Tell whether most lines are `name = value`. */
function isAssignments(text: string): boolean {
  const lines = text.split('\n').filter((line) => /^\s*[^\s#]/.test(line));
  return lines.filter((line) => /^\s*[\w.]+\s*=/.test(line)).length * 2 > lines.length;
}

/** Leave out what serve would refuse. @returns false if it would refuse the rest as well */
async function verify(
  draft: Draft,
  files: Readonly<Record<string, string>>,
  out: string,
  shell: Shell
): Promise<boolean> {
  await leaveOutBridges(draft, shell);
  const keys = Object.keys(draft.config);
  const readFile: Shell['readFile'] = async (path, maxBytes) =>
    path === out
      ? Buffer.from(JSON.stringify(draft.config))
      : files[path] !== undefined
        ? Buffer.from(files[path])
        : shell.readFile(path, maxBytes);
  // the environment of this shell is not part of the file
  const inFile = Object.create(shell, Object.getOwnPropertyDescriptors({ env: {}, readFile })) as Shell;
  const { content, problems, settings } = await examineConfiguration({ config: out }, inFile, MAX_PROBLEMS);
  const left = keys.filter((key) => !Object.hasOwn(content, key));
  for (const [at, key] of left.entries()) {
    const text = problems.find((one) => one.key === key)?.text ?? problems[at].text;
    const reason = text.replace(`${out}: `, '').replace(`"${key}" `, '').replace(` in ${out}`, '');
    draft.leaveOut(key, reason.replace(/; remove it$/, ''));
  }
  const warnings = problems.filter(({ key }) => key === undefined).map(({ text }) => `warning: ${text}`);
  draft.added.push(...warnings);
  return settings !== undefined && warnings.length === 0;
}

/** Leave out bridges whose options are not valid. */
async function leaveOutBridges(draft: Draft, shell: Shell): Promise<void> {
  const bridges = (draft.config.bridges ?? []) as Record<string, unknown>[];
  for (const [at, options] of [...bridges.entries()].reverse()) {
    try {
      bridge(createBroker(), (await filledOptions(options, 'bridge', shell)).filled as never);
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      draft.leaveOutEntry('bridges', at, error.message);
    }
  }
}

/** Write files that do not exist. If one exists, none is written. @throws BrokerError FILE_EXISTS, FILE_UNWRITABLE */
async function writeNew(files: readonly (readonly [path: string, text: string])[]): Promise<void> {
  const opened = [];
  let path = '';
  try {
    for (const [name, text] of files) {
      path = name;
      opened.push({ path, text, handle: await open(path, 'wx', FILE_MODE) });
    }
    for (const file of opened) {
      path = file.path;
      await file.handle.writeFile(file.text);
    }
  } catch (cause) {
    for (const file of opened) await rm(file.path, { force: true });
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new BrokerError('FILE_UNWRITABLE', `cannot write ${path}: ${message}`, { cause });
    throw new BrokerError('FILE_EXISTS', `${path} exists, and is not overwritten: name another file with --out`, {
      cause
    });
  } finally {
    for (const { handle } of opened) await handle.close();
  }
}

function texts({ refused, added }: Draft): string {
  const lines = refused.map(({ file, line, text, reason }) => `${file}:${line}: ${text}\n  not taken over: ${reason}`);
  return [...lines, ...added.map((text) => (text.startsWith('warning: ') ? text : `added: ${text}`))]
    .map((line) => `${line.split('\n').map(oneLine).join('\n')}\n`)
    .join('');
}
