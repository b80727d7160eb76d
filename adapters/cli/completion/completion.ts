import { InvalidInput } from '../../../lib/index.ts';
import type { Command, Completed } from '../command.ts';
import { readFlags } from '../flags.ts';
import { BASH_SCRIPT, ZSH_SCRIPT } from './shells.ts';
import { shellTables } from './tables.ts';

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH_SCRIPT, zsh: ZSH_SCRIPT };

/**
 * `embermq completion`: print a script that completes command lines in a shell.
 * @param root the commands with their flags and words
 */
export function completionOf(root: () => Promise<Completed>): Command {
  return {
    summary: 'print a script that completes command lines in bash or zsh',
    completed: () => ({ words: Object.fromEntries(Object.keys(SCRIPTS).map((name) => [name, {}])) }),
    help: () => `usage: embermq completion bash|zsh

Prints a script for a shell. It completes commands, flags, their values, the actions of ctl, and files. Load it in ~/.bashrc or ~/.zshrc, after
compinit:

  eval "$(embermq completion bash)"
  eval "$(embermq completion zsh)"

The script belongs to this version of embermq, and starts no process.`,
    async run(args, shell) {
      const { words } = readFlags({}, args);
      const [name, more] = words;
      if (name === undefined || more !== undefined || !Object.hasOwn(SCRIPTS, name)) throw unknownShell(name, more);
      const tables = shellTables(await root());
      shell.stdout.write(SCRIPTS[name].replace('TABLES\n', () => tables));
      return 0;
    }
  };
}

function unknownShell(name: string | undefined, more: string | undefined): InvalidInput {
  const names = Object.keys(SCRIPTS);
  const wrong = name === undefined || more !== undefined ? 'completion needs one shell' : `unknown shell "${name}"`;
  return new InvalidInput(
    'COMMAND_UNKNOWN',
    'SHELL',
    names.join(' or '),
    name,
    `${wrong}: embermq completion ${names.join('|')}`
  );
}
