// Packages of Python, in virtual environments below `.cache/ported`, and programs that run in one.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const cache = join(import.meta.dirname, '../../.cache/ported');

/** A virtual environment. */
export interface Python {
  /** The path of its interpreter. */
  readonly program: string;
  /** The installed version of each package that was asked for. */
  readonly versions: Readonly<Record<string, string>>;
}

/** Installs packages into a virtual environment, unless it has them already. @param packages requirements, such as `paho-mqtt>=2,<3` */
export function pythonWith(name: string, packages: readonly string[]): Python {
  const folder = join(cache, name);
  const program = join(folder, 'bin/python');
  const marker = join(folder, 'requirements.txt');
  const wanted = packages.join('\n');
  if (!existsSync(marker) || readFileSync(marker, 'utf8') !== wanted) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(cache, { recursive: true });
    execFileSync('python3', ['-m', 'venv', folder], { stdio: ['ignore', 'ignore', 2] });
    execFileSync(program, [...PIP, 'install', ...packages], { stdio: ['ignore', 'ignore', 2] });
    writeFileSync(marker, wanted);
  }
  const names = packages.map((text) => text.replace(/[<>=!~].*/, ''));
  const code = `import importlib.metadata, json; print(json.dumps({n: importlib.metadata.version(n) for n in ${JSON.stringify(names)}}))`;
  return { program, versions: JSON.parse(execFileSync(program, ['-c', code], { encoding: 'utf8' })) };
}

/** Unpacks the source package of an installed package, which has its tests. Returns the folder. */
export function sourceOf({ program, versions }: Python, name: string): string {
  const folder = join(cache, `${name}-${versions[name]}`);
  if (!existsSync(folder)) {
    const download = `${folder}-download`;
    const from = ['--no-deps', '--no-binary', name, '--dest', download, `${name}==${versions[name]}`];
    execFileSync(program, [...PIP, 'download', ...from], { stdio: ['ignore', 'ignore', 2] });
    const [archive] = readdirSync(download);
    const unpacked = `${folder}-new`;
    mkdirSync(unpacked, { recursive: true });
    execFileSync('tar', ['-xzf', join(download, archive), '-C', unpacked, '--strip-components=1']);
    rmSync(download, { recursive: true });
    execFileSync('mv', [unpacked, folder]);
  }
  return folder;
}

const PIP = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];

/** Options for running a program of Python. */
interface RunOptions {
  readonly cwd?: string;
  /** Called with each line of its standard output. A string that it returns is written to the standard input. */
  readonly onLine?: (line: string) => Promise<string | undefined> | undefined;
  /** Default 120 s. */
  readonly timeoutMs?: number;
}

/**
 * Runs a program of this folder.
 * @returns its standard output
 * @throws Error with its output if it fails or takes too long
 */
export async function runPython(
  { program }: Python,
  file: string,
  args: readonly string[],
  { cwd, onLine, timeoutMs = 120_000 }: RunOptions = {}
): Promise<string> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONUNBUFFERED: '1' };
  const child = spawn(program, [join(import.meta.dirname, file), ...args], { cwd, env });
  const killer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdin.on('error', () => {}); // the program has ended: its exit code says why
  createInterface(child.stdout).on('line', (line) => {
    output += `${line}\n`;
    void onLine?.(line)?.then((answer) => answer !== undefined && child.stdin.write(`${answer}\n`));
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(killer);
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code ?? signal}:\n${output}${errors}`);
  return output;
}
