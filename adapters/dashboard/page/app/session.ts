import { computed, signal } from '@preact/signals';
import { instantOf } from '../model/format.ts';
import { onLoggedOut, RequestError, send } from './requests.ts';

/** Facts about the session. */
export interface Session {
  readonly id: string;
  readonly scope: 'viewer' | 'administrator';
  /** The person is a management user, with a password that can be changed here. */
  readonly hasPassword: boolean;
  readonly node: string;
  readonly version: string;
  /** Time at which the broker was started, in milliseconds since 1970. */
  readonly startedAt?: number;
  readonly viewerPayloads: boolean;
  /** Upgrade requests arrive at the console or do not, because the host does not pass them on; `untried`: none has been made. */
  readonly upgrades: 'arrive' | 'missing' | 'untried';
  /** The zone of the local times in answers of the management interface: `Europe/Berlin`. */
  readonly timeZone?: string;
}

/** The states of the login. `lost`: the session has ended, and its data stay in view. */
export type LoginState =
  | { readonly is: 'loading' }
  | { readonly is: 'failed'; readonly error: unknown }
  | {
      readonly is: 'none' | 'lost';
      /** The page at which people log in to the host app. */
      readonly loginUrl: string | undefined;
      /** Only the host app logs people in. */
      readonly isOfHost: boolean;
    }
  | { readonly is: 'open' };

export const login = signal<LoginState>({ is: 'loading' });
/** The session, also while a person has to log in again. */
export const session = signal<Session | undefined>(undefined);
/** The person may change something. */
export const isAdministrator = computed(() => session.value?.scope === 'administrator');
/** The person may read payloads. */
export const mayReadPayloads = computed(() => isAdministrator.value || session.value?.viewerPayloads === true);

/** A local time of the broker in milliseconds since 1970. */
export function serverTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : instantOf(text, session.value?.timeZone);
}

/** Ask the server for the session. @returns false if the server has not answered; a session that is known stays then */
export async function loadSession(): Promise<boolean> {
  try {
    const found = (await (await send('session', { isBackground: true })).json()) as Session;
    if (session.value !== undefined && session.value.id !== found.id) location.reload(); // another person: nothing of the view is theirs
    session.value = found;
    login.value = { is: 'open' };
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) {
      const { loginUrl, login: by } = (error.body ?? {}) as { readonly loginUrl?: string; readonly login?: string };
      login.value = {
        is: session.value === undefined ? 'none' : 'lost',
        loginUrl: isSafe(loginUrl) ? loginUrl : undefined,
        isOfHost: by === 'host'
      };
      return true;
    }
    if (session.value === undefined) login.value = { is: 'failed', error };
    return false;
  }
}

/** True for an address over HTTP: loading another one could execute code. */
function isSafe(url: string | undefined): boolean {
  return (
    url !== undefined && URL.canParse(url, location.href) && /^https?:$/.test(new URL(url, location.href).protocol)
  );
}

/** The address of the login of the host app. `{return}` in it becomes the address of the view: the path, if both are of one origin. */
export function hostLogin(loginUrl: string): string {
  const { origin, pathname, search, hash, href } = location;
  const isOwn = new URL(loginUrl, href).origin === origin;
  return loginUrl.replaceAll('{return}', encodeURIComponent(isOwn ? pathname + search + hash : href));
}

/** Log in. @throws RequestError */
export async function logIn(id: string, password: string): Promise<void> {
  await send('login', { method: 'POST', body: { id, password } });
  await loadSession();
}

/** Log out, and forget everything that was shown. */
export async function logOut(): Promise<void> {
  await send('logout', { method: 'POST', body: {} });
  location.reload();
}

onLoggedOut(() => {
  if (login.value.is === 'open') void loadSession();
});
