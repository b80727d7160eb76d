import { type FolderReport, inspectFolder } from '../../level/index.ts';
import { type Command, oneLine, type Shell } from '../command.ts';
import { describeFlags, flag, readAs, refuseWords, spelledAsFlag } from '../flags.ts';
import { CONFIG_FLAG, LIBRARY_OPTIONS, SERVE_OPTIONS } from '../serve/options.ts';
import { type Check, type Finding, fault, type Subject } from './check.ts';
import { examineConfiguration, gatherServeFlags } from './configuration.ts';
import { CONFIGURATION_CHECKS } from './configuration-checks.ts';
import { type Construction, construct } from './construction.ts';
import { FOLDER_CHECKS } from './folder-checks.ts';
import { type Machine, thisMachine } from './machine.ts';
import { MACHINE_CHECKS } from './machine-checks.ts';
import { PORT_CHECKS } from './port-checks.ts';
import { SERVER_CHECKS } from './server-checks.ts';

/** The flags of the command, beside those of `serve`. */
export const DOCTOR_FLAGS = {
  json: flag('boolean', false, 'print a list of objects with id, level (ok, warning, fault), text and remedy')
};

/** All checks, in the order of the output. */
export const CHECKS: readonly Check[] = [
  ...CONFIGURATION_CHECKS.filter(({ id }) => /^config|^packages/.test(id)),
  ...FOLDER_CHECKS,
  ...PORT_CHECKS,
  ...SERVER_CHECKS,
  ...MACHINE_CHECKS,
  ...CONFIGURATION_CHECKS.filter(({ id }) => !/^config|^packages/.test(id))
];

/** A line of the output. */
interface Line extends Omit<Finding, 'remedy'> {
  readonly id: string;
  readonly remedy: string | null;
}

/** The result if the settings could not be read. */
const NOTHING: Construction = { problems: [], unusable: new Map() };

const EXIT_CODES = { ok: 0, warning: 1, fault: 2 } as const;

/** `embermq doctor`: examine a broker, its data folder and the machine, without changing anything. */
export const doctor: Command = {
  summary: 'examine the configuration, the data folder and the machine of a broker, without changing anything',
  completed: () => ({
    flags: { ...DOCTOR_FLAGS, ...CONFIG_FLAG, ...SERVE_OPTIONS, ...LIBRARY_OPTIONS },
    files: 'folder'
  }),
  help: () => `usage: embermq doctor [DIR] [flags]

Examines the data folder DIR (default ./data, or --data-dir), the configuration, ports, servers, versions, the clock, limits and who can connect,
and prints a line for each check, with a remedy if something is wrong. Give it the flags, the environment and the config file that serve gets,
and run it as the user of the broker. The broker may run or not; nothing is changed.

The exit code is 0 if all is well, 1 after warnings, and 2 after faults, or if the command line is invalid.

${describeFlags(DOCTOR_FLAGS)}
  All flags of serve are accepted, such as --config FILE; see embermq help serve.`,
  run: (args, shell) => examine(args, shell, thisMachine)
};

/**
 * Run all checks.
 * @param machine the machine to examine; tests replace parts of it
 * @returns the exit code
 * @throws InvalidInput FLAG_UNKNOWN, FLAG_INVALID
 */
export async function examine(args: readonly string[], shell: Shell, machine: Machine): Promise<number> {
  const { own, serve, words } = gatherServeFlags(DOCTOR_FLAGS, args);
  const { json } = readAs(DOCTOR_FLAGS, own, spelledAsFlag);
  const [dir, ...more] = words;
  refuseWords(more, 'doctor');
  const flags = dir === undefined ? serve : { ...serve, dataDir: dir };
  const configuration = await examineConfiguration(flags, shell);
  const { settings } = configuration;
  const construction = settings === undefined ? NOTHING : await construct(settings, shell);
  const named = flags.dataDir ?? shell.env.EMBERMQ_DATA_DIR ?? SERVE_OPTIONS.dataDir.default;
  const folder = settings === undefined ? `${named}` : settings.own.memory ? undefined : settings.own.dataDir;
  const subject: Subject = {
    ...configuration,
    problems: [...configuration.problems, ...construction.problems],
    unusable: construction.unusable,
    folder,
    isNamed: dir !== undefined,
    report: await reportOn(folder),
    machine,
    shell
  };
  const lines: Line[] = [];
  for (const check of CHECKS)
    for (const { level, text, remedy = check.remedy } of await findingsOf(check, subject))
      lines.push({ id: check.id, level, text: oneLine(text), remedy: level === 'ok' ? null : remedy });
  shell.stdout.write(json === true ? `${JSON.stringify(lines, undefined, 2)}\n` : texts(lines));
  return Math.max(...lines.map(({ level }) => EXIT_CODES[level]));
}

async function reportOn(folder: string | undefined): Promise<FolderReport | Error | undefined> {
  return folder === undefined ? undefined : inspectFolder(folder).catch((error: Error) => error);
}

/** Run a check. One that fails is a fault: what it should find is unknown. */
async function findingsOf({ run }: Check, subject: Subject): Promise<Finding[]> {
  try {
    return await run(subject);
  } catch (error) {
    return [fault(`cannot be examined: ${(error as Error).message}`, 'Run the doctor as the user of the broker.')];
  }
}

function texts(lines: readonly Line[]): string {
  const width = Math.max(...CHECKS.map(({ id }) => id.length));
  const counted = (level: Finding['level'], name: string) => {
    const count = lines.filter((line) => line.level === level).length;
    return `${count} ${name}${count === 1 ? '' : 's'}`;
  };
  const rows = lines.map(({ id, level, text, remedy }) => {
    const row = `${level.padEnd(7)}  ${id.padEnd(width)}  ${text}\n`;
    return remedy === null ? row : `${row}${' '.repeat(width + 11)}remedy: ${remedy}\n`;
  });
  return `${rows.join('')}${counted('fault', 'fault')}, ${counted('warning', 'warning')}\n`;
}
