import { randomBytes } from 'node:crypto';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { formatScram, scramCredentialsOf } from '../../../lib/adapter.ts';
import { BrokerError, hashPassword, InvalidInput, NotFound } from '../../../lib/index.ts';
import { readTextFile } from '../text-file.ts';
import { linesOf, readLine } from './lines.ts';

/** Options of `editPasswordFile`. */
export interface EditPasswordFileOptions {
  /** Store credentials for SCRAM-SHA-256 and SCRAM-SHA-512 in addition to the hash. Default false. */
  readonly scram?: boolean;
  /**
   * Base-2 logarithm of the cost of the scrypt hash, 10 to 20. Default 14; each increment doubles time and memory of a
   * login.
   */
  readonly cost?: number;
}

/** The effect of `editPasswordFile`. */
export type PasswordFileEdit = 'added' | 'changed' | 'deleted';

/** The mode of a new file. */
const PRIVATE = 0o600;
/** Rights of the group that an existing file keeps, because the broker may read it as a member of the group. */
const GROUP = 0o060;

/** The last edit of this process; the next one waits for it. */
let previous: Promise<unknown> = Promise.resolve();

/**
 * Set the password of a user in a password file, or delete the user. A file that does not exist is created.
 *
 * The file is replaced by a new one, so that a reader or a crash finds either the old content or the new one. All other
 * lines are preserved. A new file can only be read by its owner; an existing one keeps its owner and group, and others
 * lose access. Edits of this process wait for each other; those of several processes must not overlap.
 * @param name must not contain a colon or control characters, begin with `#`, or begin or end with a space
 * @param password undefined: delete the user
 * @throws InvalidInput NAME_INVALID, PASSWORD_INVALID, OPTION_INVALID; NotFound USER_UNKNOWN; BrokerError
 * FILE_UNREADABLE, FILE_UNWRITABLE
 */
export async function editPasswordFile(
  file: string,
  name: string,
  password: string | Buffer | undefined,
  options: EditPasswordFileOptions = {}
): Promise<PasswordFileEdit> {
  checkName(name);
  const line = password === undefined ? undefined : `${name}:${await wordsOf(password, options)}`;
  const edit = previous.then(() => replaceLine(file, name, line));
  previous = edit.catch(() => {});
  return edit;
}

async function wordsOf(password: string | Buffer, { scram = false, cost }: EditPasswordFileOptions): Promise<string> {
  const hash = await hashPassword(password, cost);
  const credentials = scram ? await scramCredentialsOf(password) : [];
  return [hash, ...credentials.map(formatScram)].join(' ');
}

function checkName(name: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they would break the line
  if (typeof name === 'string' && /^[^#:\x00-\x1f\x7f][^:\x00-\x1f\x7f]*$/.test(name) && name.trim() === name) return;
  const expected =
    'a name without colons and control characters that does not begin with "#" and has no spaces around it';
  throw new InvalidInput('NAME_INVALID', 'name', expected, name);
}

/** @param line undefined: delete the line of the user */
async function replaceLine(file: string, name: string, line: string | undefined): Promise<PasswordFileEdit> {
  const path = await targetOf(file);
  const text = path === undefined ? '' : await readTextFile(path);
  const lines = linesOf(text);
  const places = lines.flatMap((old, at) => (readLine(old, at + 1)?.name === name ? [at] : []));
  const [first] = places;
  if (first === undefined && line === undefined)
    throw new NotFound('USER_UNKNOWN', `${file}: there is no user "${name}"`);
  const end = /\r\n$/.test(lines[0] ?? '') ? '\r\n' : '\n';
  const changed = lines.map((old, at) =>
    at === first && line !== undefined ? line + (/\r?\n$/.exec(old)?.[0] ?? end) : old
  );
  const kept = changed.filter((_, at) => !places.includes(at) || (at === first && line !== undefined));
  const last = kept.at(-1);
  const isOpen = last !== undefined && !last.endsWith('\n');
  if (first === undefined) kept.push(`${isOpen ? end : ''}${line}${end}`);
  await replaceFile(path ?? resolve(file), kept.join(''), path !== undefined).catch((cause: Error) => {
    throw new BrokerError('FILE_UNWRITABLE', `cannot write ${file}: ${cause.message}`, { cause });
  });
  if (line === undefined) return 'deleted';
  return first === undefined ? 'added' : 'changed';
}

/** The file behind symbolic links; undefined if it does not exist. */
async function targetOf(file: string): Promise<string | undefined> {
  try {
    return await realpath(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new BrokerError('FILE_UNREADABLE', `cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
}

async function replaceFile(path: string, text: string, exists: boolean): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', PRIVATE);
  try {
    try {
      if (exists) {
        const { uid, gid, mode } = await stat(path);
        const own = await file.stat();
        if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid);
        await file.chmod(PRIVATE | (mode & GROUP));
      }
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Make the renaming durable against a loss of power. Some systems cannot do this for a folder. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    // the content is durable, and the name will be written soon
  }
}
