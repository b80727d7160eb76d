import { createRequire } from 'node:module';
import { nearest } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import type { Command, Completed, Shell } from './command.ts';
import { log } from './command.ts';

/** The commands, loaded on demand so that `pub` does not have to load the broker. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve/serve.ts')).serve,
  pub: async () => (await import('./pub.ts')).pub,
  sub: async () => (await import('./sub.ts')).sub,
  ctl: async () => (await import('./ctl/ctl.ts')).ctl,
  bench: async () => (await import('./bench.ts')).bench,
  passwd: async () => (await import('./passwd.ts')).passwd,
  store: async () => (await import('./store.ts')).store,
  import: async () => (await import('./import/import.ts')).importCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctor,
  record: async () => (await import('./record.ts')).record,
  decode: async () => (await import('./decode.ts')).decode,
  completion: async () => (await import('./completion/completion.ts')).completionOf(completedCommands)
};

/** The words that may follow `embermq`. */
async function completedCommands(): Promise<Completed> {
  const loaded = Object.entries(COMMANDS).map(async ([name, load]) => [name, (await load()).completed()] as const);
  const words: Record<string, Completed> = Object.fromEntries(await Promise.all(loaded));
  const described = Object.fromEntries(Object.keys(words).map((name) => [name, {}]));
  return { words: { ...words, help: { words: { ...described, options: {} } }, version: {} } };
}

/**
 * Run `embermq <command> ...`.
 * @returns the exit code: 0 for success, 1 after an error, 2 if the command line or the configuration is invalid
 */
export async function runCommand(args: readonly string[], shell: Shell): Promise<number> {
  const running: { command?: Command } = {};
  // Without a listener, an error event would end the process.
  shell.stderr.on('error', () => {});
  shell.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    const fault = `cannot write to standard output: ${message}`;
    if (running.command?.outlivesOutput) return log(shell, fault);
    if (code === 'EPIPE') return shell.exit(141); // the exit code of a process that SIGPIPE ended, as in `embermq sub ... | head`
    log(shell, `embermq: ${fault}`);
    shell.exit(1);
  });
  try {
    return await dispatch(args, shell, running);
  } catch (error) {
    // broker.stop() reports all its errors together
    const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
    if (!errors.every((one) => one instanceof BrokerError)) throw error;
    for (const { message } of errors) log(shell, `embermq: ${message}`);
    return error instanceof InvalidInput ? 2 : 1;
  }
}

async function dispatch(
  [name, ...args]: readonly string[],
  shell: Shell,
  running: { command?: Command }
): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') return help(args, shell);
  if (name === 'version' || name === '--version' || name === '-v') {
    shell.stdout.write(`embermq ${version()}\n`);
    return 0;
  }
  const command = await find(name);
  if (asksForHelp(args, command)) return help([name, ...args], shell);
  running.command = command;
  return command.run(args, shell);
}

function asksForHelp(args: readonly string[], { hasHostFlag = false }: Command): boolean {
  return args.includes('--help') || (args.includes('-h') && (!hasHostFlag || args.length === 1));
}

async function help(args: readonly string[], shell: Shell): Promise<number> {
  const [name, ...rest] = args;
  shell.stdout.write(`${await helpFor(name, rest)}\n`);
  return 0;
}

async function helpFor(name: string | undefined, args: readonly string[]): Promise<string> {
  if (name === undefined) return overview();
  if (name === 'options') return (await import('./serve/options.ts')).optionsHelp();
  return (await find(name)).help(args);
}

async function overview(): Promise<string> {
  const lines = ['embermq: an MQTT broker and its tools', '', 'usage: embermq <command> [flags]', ''];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(12)}${(await load()).summary}`);
  return [
    ...lines,
    '  help        describe a command (embermq help serve, or embermq serve -h) or all options (embermq help options)',
    '  version     print the version; also embermq -v'
  ].join('\n');
}

async function find(name: string): Promise<Command> {
  if (Object.hasOwn(COMMANDS, name)) return COMMANDS[name]();
  const near = nearest(name, [...Object.keys(COMMANDS), 'help', 'version']);
  const hint = near === undefined ? 'see embermq help' : `did you mean "${near}"?`;
  throw new InvalidInput('COMMAND_UNKNOWN', 'command', 'a known command', name, `unknown command "${name}"; ${hint}`);
}

/** The package refers to itself by name, which works both from the sources and from `dist`. */
function version(): string {
  return (createRequire(import.meta.url)('embermq/package.json') as { version: string }).version;
}
