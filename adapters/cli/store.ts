// The commands for the data folder of a broker that has stopped; everything about records is in `lib/tools`. Only an
// import may create a store, so the folder is looked at first: a misspelt name would otherwise become an empty store.
// Output waits for standard output to drain, since an export can be larger than memory.

import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { nearest, type Store } from '../../lib/adapter.ts';
import {
  BrokerError,
  checkStore,
  exportStore,
  InvalidInput,
  importStore,
  type StoreStatistics,
  storeStatistics
} from '../../lib/index.ts';
import { levelStore } from '../level/index.ts';
import { type Command, log, type Shell } from './command.ts';
import { describeFlags, type FlagValues, flag, readFlags } from './flags.ts';
import { ProgressBar } from './progress-bar.ts';

/** The flags of the command. */
export const STORE_FLAGS = {
  repair: flag(
    'boolean',
    false,
    'check: remove or repair damaged records, so that a broker can continue with the rest'
  ),
  json: flag('boolean', false, 'check, stats: print JSON; after an error {"error": {"code", "message"}}'),
  scratch: flag(
    'string',
    undefined as string | undefined,
    'check, stats, export: write the files that opening a folder needs to DIR; for a folder that is read-only or on a full disk',
    { value: 'DIR' }
  )
};

type StoreFlags = FlagValues<typeof STORE_FLAGS>;

/** The actions on a folder. */
const ACTIONS = { check, stats, export: exportFolder, import: importFolder } as const;

/** `embermq store`: maintain the data folder of a broker that is not running. */
export const store: Command = {
  summary: 'check, count, export and import the data folder of a broker',
  completed: () => ({
    flags: STORE_FLAGS,
    words: Object.fromEntries(Object.keys(ACTIONS).map((name) => [name, { files: 'folder' }]))
  }),
  help: () => `usage: embermq store check|stats DIR [flags]
       embermq store export DIR > FILE
       embermq store import DIR < FILE

DIR is the data folder of a broker that has stopped (serve --data-dir DIR).

  check   read every record and print what is damaged or missing, one line each; the exit code is 1 if anything is, even if repaired
  stats   count records and bytes by kind, and name the ten largest sessions
  export  write all records to standard output, one line of JSON each, with payloads and keys in base64
  import  read such lines from standard input into a folder that is new, empty, or left by an import
          that was killed

${describeFlags(STORE_FLAGS)}`,
  async run(args, shell) {
    const { values: flags, words } = readFlags(STORE_FLAGS, args);
    const [name, folder] = readWords(words);
    if (flags.repair && name !== 'check')
      throw new InvalidInput(
        'FLAG_INVALID',
        '--repair',
        'store check',
        name,
        `--repair is for store check, not ${name}`
      );
    if (flags.scratch !== undefined && (flags.scratch === '' || flags.repair || name === 'import'))
      throw new InvalidInput(
        'FLAG_INVALID',
        '--scratch',
        'a folder, with check, stats or export',
        flags.scratch,
        flags.scratch === ''
          ? '--scratch needs a folder'
          : `--scratch is only for reading, not for ${flags.repair ? 'check --repair' : 'import'}`
      );
    if (name === 'import' && shell.stdin.isTTY === true) {
      const message = `store import reads a file of store export or ctl backup from standard input: ${usageOf(name, folder)}`;
      throw new InvalidInput('OPTION_MISSING', 'FILE', 'a file as standard input', 'a terminal', message);
    }
    try {
      return await runAction(name, folder, flags, shell);
    } catch (error) {
      if (flags.json && (name === 'check' || name === 'stats')) shell.stdout.write(`${errorAsJson(error)}\n`);
      throw error;
    }
  }
};

async function runAction(name: keyof typeof ACTIONS, folder: string, flags: StoreFlags, shell: Shell): Promise<number> {
  if (name !== 'import') await checkContainsStore(folder);
  const bar = new ProgressBar(shell, `${name}:`, name === 'import' ? (shell.stdinBytes ?? 0) : await sizeOf(folder));
  try {
    return await ACTIONS[name](
      levelStore(folder, { scratch: flags.scratch, onWarning: (text) => log(shell, `warning: ${text}`) }),
      flags,
      shell,
      bar
    );
  } finally {
    bar.end();
  }
}

function errorAsJson(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return JSON.stringify({ error: { code, message } });
}

function readWords([name, folder, more]: readonly string[]): [keyof typeof ACTIONS, string] {
  const names = Object.keys(ACTIONS);
  if (name === undefined || !Object.hasOwn(ACTIONS, name)) {
    const near = name === undefined ? undefined : nearest(name, names);
    const hint = near === undefined ? 'see embermq help store' : `did you mean "${near}"?`;
    const message =
      name === undefined
        ? `store needs one of ${names.join(', ')}; ${hint}`
        : `unknown action "${name}" of store; ${hint}`;
    throw new InvalidInput('COMMAND_UNKNOWN', 'command', `one of ${names.join(', ')}`, name, message);
  }
  if (!folder || more !== undefined)
    throw new InvalidInput(
      'FLAG_INVALID',
      'DIR',
      'one folder',
      more,
      `store ${name} needs one folder: ${usageOf(name)}`
    );
  return [name as keyof typeof ACTIONS, folder];
}

function usageOf(name: string, folder = 'DIR'): string {
  const files: Readonly<Record<string, string>> = { export: ' > FILE', import: ' < FILE' };
  return `embermq store ${name} ${folder}${files[name] ?? ''}`;
}

/**
 * Check that a folder contains a store, because only an import may create one.
 * @throws BrokerError STORE_UNUSABLE
 */
async function checkContainsStore(folder: string): Promise<void> {
  const remedy = 'Name the data folder of a broker (serve --data-dir).';
  const names = await readdir(folder).catch((cause: Error) => {
    throw new BrokerError('STORE_UNUSABLE', `${folder}: cannot be read: ${cause.message}. ${remedy}`, { cause });
  });
  if (!names.some((name) => /^CURRENT$|^MANIFEST-|\.(ldb|sst|log)$/.test(name)))
    throw new BrokerError('STORE_UNUSABLE', `${folder}: this folder contains no store. ${remedy}`);
}

async function sizeOf(folder: string): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(folder))
      .filter((name) => name !== 'RESERVE')
      .map((name) =>
        stat(join(folder, name)).then(
          ({ size }) => size,
          () => 0
        )
      )
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function check(given: Store, { repair, json }: StoreFlags, shell: Shell, bar: ProgressBar): Promise<number> {
  const report = await checkStore(given, { repair, onProgress: bar.show });
  const { findings, records, bytes, commits, isRepaired } = report;
  bar.end();
  if (json) shell.stdout.write(`${JSON.stringify(report)}\n`);
  else {
    for (const { code, text } of findings) shell.stdout.write(`${code}: ${text}\n`);
    const verdict = findings.length === 0 ? 'sound' : `${findings.length} findings${isRepaired ? ', repaired' : ''}`;
    shell.stdout.write(`${report.name}: ${verdict} (${records} records, ${bytes} bytes, ${commits} commits)\n`);
  }
  if (findings.length > 0 && !isRepaired)
    log(shell, 'embermq: restore a backup, or continue without the lost records: embermq store check DIR --repair');
  return findings.length === 0 ? 0 : 1;
}

async function stats(given: Store, { json }: StoreFlags, shell: Shell, bar: ProgressBar): Promise<number> {
  const statistics = await storeStatistics(given, { onProgress: bar.show });
  bar.end();
  shell.stdout.write(json ? `${JSON.stringify(statistics)}\n` : table(statistics));
  return 0;
}

function table({ name, kinds, largestSessions, records, bytes }: StoreStatistics): string {
  const rows = [
    ['kind', 'records', 'bytes'],
    ...Object.entries(kinds).map(([kind, share]) => [kind, String(share.records), String(share.bytes)]),
    ['all', String(records), String(bytes)]
  ];
  const sessions = [
    ['client id', 'subscriptions', 'messages', 'bytes'],
    ...largestSessions.map((share) => [
      JSON.stringify(share.clientId),
      String(share.subscriptions),
      String(share.messages),
      String(share.bytes)
    ])
  ];
  const ofSessions = largestSessions.length === 0 ? '' : `\nlargest sessions\n${aligned(sessions)}`;
  return `${name}\n${aligned(rows)}${ofSessions}`;
}

/** Align the first column to the left, and the numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0].map((_, at) => Math.max(...rows.map((cells) => cells[at].length)));
  const lines = rows.map((cells) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join('  ')
  );
  return lines.map((line) => `  ${line}\n`).join('');
}

async function exportFolder(given: Store, _: StoreFlags, { stdout }: Shell, bar: ProgressBar): Promise<number> {
  for await (const line of exportStore(given, { onProgress: bar.show }))
    if (!stdout.write(`${line}\n`)) await once(stdout, 'drain');
  bar.finish();
  return 0;
}

async function importFolder(given: Store, _: StoreFlags, shell: Shell, bar: ProgressBar): Promise<number> {
  let readBytes = 0;
  const lines = linesOf(shell, (line) => {
    readBytes += Buffer.byteLength(line) + 1;
  });
  const { records } = await importStore(given, lines, {
    onProgress: ({ records }) => bar.show({ records, bytes: readBytes })
  });
  bar.end();
  log(shell, `${given.name}: ${records} records`);
  return 0;
}

/** The lines of standard input. Nothing is read before the first line is requested. */
async function* linesOf({ stdin }: Shell, onLine: (line: string) => void): AsyncGenerator<string, void> {
  for await (const line of createInterface({ input: stdin, crlfDelay: Infinity })) {
    onLine(line);
    yield line;
  }
}
