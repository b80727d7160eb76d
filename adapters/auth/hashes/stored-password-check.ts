import { type ForeignChecks, foreignFormatOf, type PasswordCheck, passwordCheckOf } from '../../../lib/adapter.ts';
import { argon2Check, nodeArgon2 } from './argon2.ts';
import { checkBcryptHash } from './bcrypt.ts';

/**
 * Read a password hash of any self-describing format: those of `passwordCheckOf`, bcrypt with the function of the
 * caller, and Argon2 with Node 24.7 or newer.
 * @throws Error if it is not valid, too costly, or cannot be checked here
 */
export function storedPasswordCheck(hash: string, foreign: Pick<ForeignChecks, 'bcrypt'>): PasswordCheck {
  const format = foreignFormatOf(hash);
  if (format === 'bcrypt') checkBcryptHash(hash);
  return format === 'argon2' ? argon2Check(hash, nodeArgon2) : passwordCheckOf(hash, foreign);
}
