import {
  type ForeignCheck,
  type ForeignChecks,
  foreignFormatOf,
  type PasswordCheck,
  parseScram,
  type ScramCredentials,
  type ScramMethod
} from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';
import { storedPasswordCheck } from '../hashes/stored-password-check.ts';
import { linesOf, readLine, type UserLine } from './lines.ts';

/** A user of a password file. */
export interface FileUser {
  readonly hash: string;
  readonly check: PasswordCheck;
  readonly scram: ReadonlyMap<ScramMethod, ScramCredentials>;
}

/**
 * Read the users of a password file.
 * @param loadBcrypt returns the function that checks bcrypt hashes; called only if the file contains bcrypt hashes
 * @throws BrokerError PASSWORD_FILE_INVALID with the number of the line, without the hash; errors of `loadBcrypt`
 */
export async function readUsers(
  text: string,
  path: string,
  loadBcrypt: () => Promise<ForeignCheck>
): Promise<Map<string, FileUser>> {
  const lines = linesOf(text)
    .map((line, at) => readLine(line, at + 1))
    .filter((line) => line !== undefined);
  const hasBcrypt = lines.some(({ words: [hash] }) => hash !== undefined && foreignFormatOf(hash) === 'bcrypt');
  const foreign: ForeignChecks = { bcrypt: hasBcrypt ? await loadBcrypt() : undefined };
  const users = new Map<string, FileUser>();
  const numbers = new Map<string, number>();
  for (const line of lines) {
    const { name, number } = line;
    try {
      const first = numbers.get(name);
      if (first !== undefined)
        throw new Error(`the user "${name}" is already in line ${first}; remove one of the lines`);
      users.set(name, userOf(line, foreign));
      numbers.set(name, number);
    } catch (cause) {
      throw new BrokerError('PASSWORD_FILE_INVALID', `${path}: line ${number}: ${(cause as Error).message}`, { cause });
    }
  }
  return users;
}

/** @throws Error */
function userOf({ name, words: [hash, ...scramWords] }: UserLine, foreign: ForeignChecks): FileUser {
  if (name === '' || hash === undefined) throw new Error('expected "name:HASH", as embermq passwd writes it');
  const check = storedPasswordCheck(hash, foreign);
  const scram = new Map<ScramMethod, ScramCredentials>();
  for (const word of scramWords) {
    const credentials = parseScram(word);
    scram.set(credentials.method, credentials);
  }
  return { hash, check, scram };
}
