import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-completion-'));
const SHELLS = { bash: ['--norc', '--noprofile'], zsh: ['-f'] } as const;
type ShellName = keyof typeof SHELLS;
const scripts = new Map<ShellName, string>();

/** Programs for the shells: they read command lines and print the offers for each in one line. */
const DRIVERS: Readonly<Record<ShellName, string>> = {
  bash: `source ./script
complete -p embermq >/dev/null || exit 9
while IFS= read -r line; do
  eval "COMP_WORDS=($line)"
  if [ -z "\${line##* }" ]; then COMP_WORDS+=(''); fi
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _embermq
  printf '%s\\n' "\${COMPREPLY[@]}" | sort | tr '\\n' ' '
  echo
done`,
  // outside of a line editor there are no builtins for completion
  zsh: `compdef() { [[ "$1 $2" == '_embermq embermq' ]] || exit 9; }
compadd() { shift; offers+=("$@"); }
compset() { cur=\${cur#*=}; }
_files() { offers+=(*(N)); if [[ $1 == -/ ]]; then offers=(*(N/)); fi; }
source ./script
while IFS= read -r line; do
  words=(\${(z)line})
  if [[ -z "\${line##* }" ]]; then words+=(''); fi
  CURRENT=$#words offers=() last=\${words[-1]}
  _embermq
  printf '%s\\n' "\${(@)\${(@M)offers:#\${last#*=}*}}" | sort | tr '\\n' ' '
  echo
done`
};

before(async () => {
  for (const name of Object.keys(SHELLS) as ShellName[]) {
    const shell = testShell();
    const parts: string[] = [];
    shell.stdout.on('data', (part) => parts.push(String(part)));
    assert.equal(await runCommand(['completion', name], shell), 0, shell.err());
    await new Promise((resolve) => setImmediate(resolve));
    scripts.set(name, parts.join(''));
  }
  mkdirSync(join(home, 'data folder'));
  for (const file of ['embermq.json', 'a b.txt']) writeFileSync(join(home, file), '');
});

after(() => rmSync(home, { recursive: true, force: true }));

/** The reason to skip the tests with a shell; false if it is there. */
function missing(name: ShellName): string | false {
  return spawnSync(name, ['--version']).status === 0 ? false : `${name} is missing; .ci/packages installs it`;
}

/** The offers of a shell for command lines whose last word is incomplete. */
function offers(name: ShellName, lines: readonly string[]): string[] {
  writeFileSync(join(home, 'script'), scripts.get(name) ?? '');
  const args = [...SHELLS[name], '-c', DRIVERS[name]];
  const { status, stdout, stderr } = spawnSync(name, args, {
    cwd: home,
    encoding: 'utf8',
    input: lines.map((line) => `${line}\n`).join('')
  });
  assert.deepEqual([status, stderr], [0, '']);
  const found = stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.trim());
  assert.equal(found.length, lines.length);
  return found;
}

/** Command lines and their offers, which are equal in both shells. */
const CASES: readonly (readonly [line: string, offered: string])[] = [
  ['embermq ', 'bench completion ctl decode doctor help import passwd pub record serve store sub version'],
  ['embermq s', 'serve store sub'],
  ['embermq completion ', 'bash zsh'],
  ['embermq help op', 'options'],
  ['embermq store ', 'check export import stats'],
  ['embermq store ch', 'check'],
  ['embermq store check --re', '--repair'],
  ['embermq store check da', 'data folder'],
  ['embermq store check --scratch da', 'data folder'],
  ['embermq bench la', 'latency'],
  ['embermq bench latency --durat', '--duration'],
  ['embermq serve --log', '--log-level'],
  ['embermq serve --log-level ', 'debug error info warn'],
  ['embermq serve --log-level d', 'debug'],
  ['embermq serve --durability p', 'power process'],
  ['embermq serve --mqtt-po', '--mqtt-port'],
  ['embermq serve --port ', 'off'],
  ['embermq serve --verbose --memo', '--memory --memory-high-watermark'],
  ['embermq serve --config em', 'embermq.json'],
  ['embermq serve -c em', 'embermq.json'],
  ['embermq serve --max-pack', '--max-packet-size'],
  ['embermq serve --host ', ''],
  ['embermq serve em', ''],
  ['embermq sub -V ', '3.1 3.1.1 5'],
  ['embermq sub --retain-handling ', '0 1 2'],
  ['embermq sub --mqtt-version 3', '3.1 3.1.1'],
  ['embermq pub -q ', '0 1 2'],
  ['embermq pub -t topic --js', '--json'],
  ['embermq decode em', 'embermq.json'],
  ['embermq passwd em', 'embermq.json'],
  ['embermq doctor da', 'data folder'],
  ['embermq ctl cl', 'clients'],
  ['embermq ctl clients ', 'busiest history kick list show'],
  ['embermq ctl --limit 5 clients sh', 'show'],
  ['embermq ctl clients busiest --by ', 'received sent'],
  ['embermq ctl clients busiest --pl', '--places'],
  ['embermq ctl clients busiest --li', '--limit'],
  ['embermq ctl clients list --by', ''],
  ['embermq ctl rules add em', 'embermq.json'],
  ['embermq ctl import --mode ', 'merge replace'],
  ['embermq ctl tail --payload h', 'hex'],
  ['embermq nosuch --a', '']
];

for (const name of Object.keys(SHELLS) as ShellName[])
  describe(`completion in ${name}`, { skip: missing(name) }, () => {
    it('offers commands, actions, flags, their values, and files', () => {
      const found = offers(
        name,
        CASES.map(([line]) => line)
      );
      for (const [at, [line, offered]] of CASES.entries()) {
        // the test orders lines of a shell, which has its own order
        const sorted = (text: string) => text.replace('data folder', 'data_folder').split(' ').sort().join(' ');
        const helpless = offered === '' && / -/.test(line) ? found[at].replace('--help', '').trim() : found[at];
        assert.equal(sorted(helpless), sorted(offered), line);
      }
    });

    it('starts no process to offer words and values', { skip: missing(name) }, () => {
      const script = scripts.get(name) ?? '';
      const body = script.slice(0, script.indexOf('\n_embermq() {'));
      const program = `PATH=/nonexistent\n${body}\n_embermq_walk store --scratch\n_embermq_offer ''\necho "$files"
_embermq_walk serve --durability\n_embermq_offer ''\necho $REPLY`;
      const { stdout } = spawnSync(name, [...SHELLS[name], '-c', program], { encoding: 'utf8' });
      assert.match(stdout, /^folder\n ?process power\n$/);
    });

    it('offers a value after = and the flags of the table that begin alike', () => {
      const [values, flags] = offers(name, [
        name === 'bash' ? 'embermq serve --log-level = w' : 'embermq serve --log-level=w',
        'embermq serve --mqtt'
      ]);
      assert.equal(values, 'warn');
      assert.equal(flags, '--mqtt-port --mqtts-port');
    });
  });

describe('embermq completion', () => {
  it('knows each flag that the help of a command describes', async () => {
    const bash = scripts.get('bash') ?? '';
    for (const name of ['serve', 'pub', 'sub', 'bench', 'passwd', 'store', 'doctor', 'record', 'decode', 'ctl']) {
      const shell = testShell();
      await runCommand(['help', name], shell);
      const described = [...shell.out().matchAll(/^ +(?:-\w, )?(--[\w-]+)/gm)].map(([, flag]) => flag);
      const row = new RegExp(`^ +'${name}'\\) REPLY='(--.*)' ;;$`, 'm').exec(bash)?.[1] ?? '';
      const completed = new Set(row.split(' ').map((flag) => flag.replace(/=.*/, '')));
      assert.ok(described.length > 0, name);
      assert.deepEqual(
        described.filter((flag) => !completed.has(flag)),
        [],
        name
      );
    }
  });

  it('refuses other shells [COMMAND_UNKNOWN]', async () => {
    for (const [args, message] of [
      [[], /completion needs one shell: embermq completion bash\|zsh/],
      [['fish'], /unknown shell "fish": embermq completion bash\|zsh/],
      [['bash', 'zsh'], /completion needs one shell/]
    ] as const) {
      const shell = testShell();
      assert.equal(await runCommand(['completion', ...args], shell), 2);
      assert.match(shell.err(), message);
    }
  });
});
