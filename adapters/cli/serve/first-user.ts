import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Broker } from '../../../lib/index.ts';
import { log, type Shell } from '../command.ts';
import { writeSecret } from './access.ts';
import { type Opened, urlOf } from './listeners.ts';

/** The name of the file in the data folder with the user that the first start with a console makes. */
const FIRST_USER = 'first-user';
const NAME = 'admin';
const PASSWORD_BYTES = 18;

/**
 * Ensure that someone can log in to the console: if a port of it is open and there is no management user, make an administrator. A store that
 * cannot be written does not prevent the start of the broker.
 * @param folder the data folder; undefined: none
 */
export async function ensureUser(
  { users }: Broker,
  opened: readonly Opened[],
  folder: string | undefined,
  shell: Shell
): Promise<void> {
  const port = opened.find(({ plan: { http } }) => http === 'dashboard');
  if (port === undefined || users.size > 0) return;
  const url = urlOf(port, '/');
  const password = randomBytes(PASSWORD_BYTES).toString('base64url');
  const file = folder === undefined ? undefined : join(folder, FIRST_USER);
  try {
    // the file first, because a user with an unknown password would be useless
    if (file !== undefined) await writeSecret(file, textOf(password));
    await users.create(NAME, password, 'administrator');
  } catch (error) {
    if (file !== undefined) await rm(file, { force: true }).catch(() => {}); // its user does not exist
    const remedy = 'add one with embermq ctl users add';
    log(shell, `warning: the first user of the console cannot be stored: ${(error as Error).message}; ${remedy}`);
    return;
  }
  const made = `user ${NAME} was made for the console, ${url}`;
  if (file !== undefined)
    log(shell, `${made}; the first line of ${file} is its name and its password: log in, and delete the file`);
  if (file === undefined || shell.stderr.isTTY === true) log(shell, `${made}. Its password: ${password}`);
}

function textOf(password: string): string {
  return `${NAME}:${password}

This is the user that "embermq serve" has made, because there was none that could log in to the console (--dashboard-port). The broker keeps only a
hash of the password. Put it in a safe place, and delete this file. embermq ctl users password ${NAME} sets another password.
`;
}
