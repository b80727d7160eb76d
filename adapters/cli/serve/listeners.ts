import type { Broker } from '../../../lib/index.ts';
import { isLoopback, type Listening } from '../../net/index.ts';
import type { Credentials } from '../../rest/index.ts';
import { log, type Shell } from '../command.ts';
import type { PlannedListener } from './settings.ts';

/** A listener that has been added to the broker. */
export interface Opened {
  readonly plan: PlannedListener;
  readonly listening: Listening;
}

/** The listeners and files that SIGHUP reloads. */
export interface Served {
  readonly opened: Opened[];
  readonly files: ReloadedFile[];
}

/** A file or a source that is read again on SIGHUP. */
interface ReloadedFile {
  /** The description in messages: `password file users`. */
  readonly label: string;
  /** @throws Error */
  reload(): Promise<void>;
}

/**
 * Reload the certificates of all listeners and other files on SIGHUP, which then no longer ends the process.
 * @returns a function that stops this; SIGHUP is ignored afterwards
 */
export function reloadAtHangup(shell: Shell, served: Served): () => void {
  let isReloading = false;
  let isWanted = false;
  const reload = async () => {
    isReloading = true;
    while (isWanted) {
      isWanted = false;
      await reloadFiles(shell, served.files);
      await reloadCertificates(shell, served);
    }
    isReloading = false;
  };
  return shell.onHangup(() => {
    isWanted = true;
    if (!isReloading) void reload();
  });
}

async function reloadFiles(shell: Shell, files: readonly ReloadedFile[]): Promise<void> {
  for (const file of files) {
    const outcome = await file.reload().then(
      () => `${file.label} reloaded`,
      (error: Error) => `${error.message}; the previous content remains in use`
    );
    log(shell, `SIGHUP: ${outcome}`);
  }
}

async function reloadCertificates(shell: Shell, { opened, files }: Served): Promise<void> {
  const secure = opened.filter(({ plan }) => plan.transport.tls !== undefined);
  if (secure.length === 0 && files.length === 0)
    log(shell, 'SIGHUP: there are no TLS listeners, so no certificates were reloaded');
  for (const { listening } of secure) {
    const outcome = await listening.reload().then(
      () => `certificates of listener ${listening.name} reloaded`,
      (error: Error) => `${error.message}; the previous certificates stay in use`
    );
    log(shell, `SIGHUP: ${outcome}`);
  }
}

/** Adds a listener to the broker, and opens it if the broker has started. */
export type OpenListener = (plan: PlannedListener) => Listening;

/**
 * Open the listeners on default ports that the user has not set. If a port is in use, print a warning and continue without its listener.
 * @throws BrokerError LISTENER_BIND_FAILED for another error, or if no listener for MQTT is left; the broker has then been stopped
 */
export async function openOptional(
  planned: readonly PlannedListener[],
  broker: Broker,
  opened: Opened[],
  { shell, open }: { readonly shell: Shell; readonly open: OpenListener }
): Promise<void> {
  const isMqtt = ({ http }: PlannedListener) => http === undefined;
  const optional = planned.filter(({ isOptional }) => isOptional);
  for (const [at, plan] of optional.entries()) {
    const listening = open(plan);
    try {
      await listening;
      opened.push({ plan, listening });
    } catch (error) {
      const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
      const isLast = isMqtt(plan) && !opened.some((one) => isMqtt(one.plan)) && !optional.slice(at + 1).some(isMqtt);
      if (cause?.code !== 'EADDRINUSE' || isLast) {
        await broker.stop();
        throw error;
      }
      log(shell, `warning: continuing without the ${plan.label} listener: ${message}`);
    }
  }
}

/** Warn if credentials for the management interface could be intercepted. */
export function warnOfClearHttp(opened: readonly Opened[], shell: Shell): void {
  const clear = opened.filter(({ plan: { http, transport } }) => {
    return (
      http !== undefined &&
      transport.tls === undefined &&
      'host' in transport.place &&
      !isLoopback(transport.place.host)
    );
  });
  if (clear.length === 0) return;
  const ports = clear.map(({ listening }) => listening.port).join(' and ');
  const remedy =
    'use --https-port and --dashboard-https-port with --cert and --key and turn the others off, or a proxy with TLS';
  log(shell, `warning: credentials for the HTTP ports ${ports} cross the network in clear text; ${remedy}`);
}

/**
 * A URL at which an application can be tried: the list of clients, or the stream rules if the management interface is not open or does not
 * ask for applications.
 * @returns undefined if no HTTP port is open
 */
export function interfaceUrl(opened: readonly Opened[], management: Credentials): string | undefined {
  const labels = [management].flat().includes('applications') ? ['http', 'https', 'http-earlier', 'rules'] : ['rules'];
  const [found] = labels.flatMap((label) => opened.filter(({ plan }) => plan.label === label));
  if (found === undefined) return undefined;
  return urlOf(found, PATHS[found.plan.http as keyof typeof PATHS]);
}

const PATHS = { earlier: '/api/v3/connections', later: '/api/v4/clients', rules: '/rules' };

/** The URL of a path at an HTTP port, for programs of this machine. */
export function urlOf({ plan, listening }: Opened, path: string): string {
  const { host = '' } = listening.address ?? {};
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `${plan.transport.tls === undefined ? 'http' : 'https'}://${name}:${listening.port}${path}`;
}

/** The ports and paths for the `ready` line, in the order of the settings. */
export function places(planned: readonly PlannedListener[], opened: readonly Opened[]): Record<string, unknown> {
  const inOrder = opened.toSorted((a, b) => planned.indexOf(a.plan) - planned.indexOf(b.plan));
  return Object.fromEntries(
    inOrder.map(({ plan: { label }, listening }) => [
      label ?? listening.name,
      listening.port ?? listening.address?.path
    ])
  );
}
