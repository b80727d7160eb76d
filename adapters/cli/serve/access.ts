import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Broker } from '../../../lib/index.ts';
import type { Credentials } from '../../rest/index.ts';
import { log, type Shell } from '../command.ts';
import { interfaceUrl, type Opened } from './listeners.ts';

/** The name of the file in the data folder with the application that the first start creates. */
const FIRST_APPLICATION = 'first-application';

/** The option `credentials` of the two interfaces. */
interface ServedCredentials {
  readonly management: Credentials;
  readonly rules: Credentials;
}

/** Describe the access that a value of the option `credentials` allows. */
function allowed(credentials: Credentials): string {
  if (credentials === 'none')
    return 'everyone who can reach it, without credentials; only applications and administrators load code';
  if (credentials === 'remote')
    return 'this machine without credentials, other machines with an application or a user; only applications and administrators load code';
  const names = [credentials].flat();
  if (!names.includes('users')) return 'applications may do everything';
  const who = names.includes('applications') ? 'applications and administrators' : 'administrators';
  return `${who} may do everything, users without this role may read`;
}

/** Log in one line the access to the open interfaces. */
export function logAccess(opened: readonly Opened[], { management, rules }: ServedCredentials, shell: Shell): void {
  const parts = [
    { name: 'management interface', credentials: management, isOf: isManagement },
    { name: 'stream rules', credentials: rules, isOf: isRules },
    { name: 'console', credentials: 'users' as const, isOf: isConsole }
  ].flatMap(({ name, credentials, isOf }) => {
    const ports = opened.filter(isOf).map(({ listening }) => listening.port);
    return ports.length === 0 ? [] : [`${name} (port ${ports.join(', ')}): ${allowed(credentials)}`];
  });
  if (parts.length > 0) log(shell, parts.join('. '));
}

function isManagement({ plan: { http } }: Opened): boolean {
  return http === 'earlier' || http === 'later';
}

function isConsole({ plan: { http } }: Opened): boolean {
  return http === 'dashboard';
}

function isRules({ plan: { http } }: Opened): boolean {
  return http === 'rules';
}

/** Warn if an open interface admits only users and there are none. */
export function warnOfNobody(
  { users }: Broker,
  opened: readonly Opened[],
  { management, rules }: ServedCredentials,
  shell: Shell
): void {
  const isOnlyUsers = (credentials: Credentials) => [credentials].flat().join() === 'users';
  if (users.size > 0) return;
  const both = 'add a user with embermq ctl users add';
  if (isOnlyUsers(management) && opened.some(isManagement)) {
    const remedy = `set management.credentials to ["applications","users"], and ${both}`;
    log(shell, `warning: the management interface cannot be used: it admits only users, and there are none: ${remedy}`);
  }
  if (isOnlyUsers(rules) && opened.some(isRules))
    log(shell, `warning: the port of stream rules cannot be used: it admits only users, and there are none: ${both}`);
}

/** The parameters of `ensureApplication`. */
interface FirstStart {
  /** The value of `--app`: `ID:SECRET`. */
  readonly app: string | undefined;
  readonly opened: readonly Opened[];
  readonly credentials: ServedCredentials;
  /** The data folder; undefined: none. */
  readonly folder: string | undefined;
}

/**
 * Ensure that an application can use the interfaces: add the one in the flag, or change its secret. Without the flag,
 * if there is no application and an open interface requires one, create it. A store that cannot be written does not
 * prevent the start of the broker.
 */
export async function ensureApplication(
  { applications }: Broker,
  { app, opened, credentials, folder }: FirstStart,
  shell: Shell
): Promise<void> {
  const asks = (given: Credentials) => [given].flat().join() !== 'users';
  const isAsked =
    (asks(credentials.rules) && opened.some(isRules)) ||
    ([credentials.management].flat().includes('applications') && opened.some(isManagement));
  try {
    if (app !== undefined) await applyApp(applications, app, shell);
    else if (isAsked && applications.size === 0)
      await makeApplication(applications, { folder, url: interfaceUrl(opened, credentials.management) }, shell);
  } catch (error) {
    const remedy = 'give one with --app ID:SECRET';
    log(shell, `warning: the application for the HTTP ports cannot be stored: ${(error as Error).message}; ${remedy}`);
  }
}

async function applyApp(applications: Broker['applications'], app: string, shell: Shell): Promise<void> {
  const colon = app.indexOf(':');
  const [id, secret] = [app.slice(0, colon), app.slice(colon + 1)];
  const known = applications.get(id);
  if (known === undefined) await applications.create({ id, secret });
  else await applications.setSecret(id, secret);
  if (known?.isEnabled === false) log(shell, `warning: application ${JSON.stringify(id)} (--app) is disabled`);
}

/**
 * Create an application for both interfaces. Its secret is written to a file, and to standard error only if that is a
 * terminal or there is no folder.
 */
async function makeApplication(
  applications: Broker['applications'],
  { folder, url }: { readonly folder: string | undefined; readonly url: string | undefined },
  shell: Shell
): Promise<void> {
  const id = `app-${randomBytes(4).toString('hex')}`;
  const secret = randomBytes(36).toString('base64url');
  const file = folder === undefined ? undefined : join(folder, FIRST_APPLICATION);
  // the file first, because an application with an unknown secret would be useless
  if (file !== undefined) await writeSecret(file, textOf(`${id}:${secret}`));
  await applications.create({ id, secret, description: 'made by the first start of embermq serve' });
  if (file !== undefined) {
    const keep = `its id and secret are the first line of ${file}: put them in a safe place, and delete the file`;
    log(shell, `application ${id} was made for the management interface and stream rules; ${keep}`);
  }
  if (file === undefined || shell.stderr.isTTY === true) {
    log(shell, `application ${id} was made for the management interface and stream rules. Its secret: ${secret}`);
    if (url !== undefined) log(shell, `try it: curl -u ${id}:${secret} ${url}`);
  } else if (url !== undefined) log(shell, `try it: curl -u "$(head -n 1 ${shellWord(file)})" ${url}`);
}

/** Quote a path for a shell. */
function shellWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function textOf(app: string): string {
  return `${app}

This is the application that the first start of "embermq serve" has made. It may use the management interface (--http-port) and stream rules
(--rules-port): curl -u ID:SECRET. The broker keeps only a hash of the secret. Put this line in a safe place, and delete this file.
`;
}

/** Write a file that only its owner may read. @throws Error of the file system */
export async function writeSecret(file: string, text: string): Promise<void> {
  await rm(file, { force: true }); // an existing file may have other permissions
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
