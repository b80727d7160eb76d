import type { Broker } from '../../lib/index.ts';
import { type Listening, listen } from '../net/index.ts';
import { type Shell, tell } from './command.ts';
import type { PlannedListener } from './serve-settings.ts';

/** A listener of the settings that the broker has. */
export interface Opened {
  readonly plan: PlannedListener;
  readonly listening: Listening;
}

/**
 * Have the certificates of all listeners read again at SIGHUP, which ends nothing from now on.
 * @returns a function that has SIGHUP ignored
 */
export function reloadAtHangup(shell: Shell, opened: readonly Opened[]): () => void {
  let isReloading = false;
  let isWanted = false;
  const reload = async () => {
    isReloading = true;
    while (isWanted) {
      isWanted = false;
      await reloadCertificates(shell, opened);
    }
    isReloading = false;
  };
  return shell.onHangup(() => {
    isWanted = true;
    if (!isReloading) void reload();
  });
}

async function reloadCertificates(shell: Shell, opened: readonly Opened[]): Promise<void> {
  const secure = opened.filter(({ plan }) => plan.transport.tls !== undefined);
  if (secure.length === 0) tell(shell, 'SIGHUP: there is no TLS listener whose certificates could be reloaded');
  for (const { listening } of secure) {
    const told = await listening.reload().then(
      () => `certificates of listener ${listening.name} reloaded`,
      (error: Error) => `${error.message}; the previous ones stay in force`
    );
    tell(shell, `SIGHUP: ${told}`);
  }
}

/**
 * Open the listeners on default ports that nobody asked for. One whose port is in use is left out with a warning.
 * @throws BrokerError LISTENER_BIND_FAILED where another reason keeps one from opening, or no listener is left; the broker has stopped then
 */
export async function openOptional(
  planned: readonly PlannedListener[],
  broker: Broker,
  opened: Opened[],
  shell: Shell
): Promise<void> {
  const optional = planned.filter(({ isOptional }) => isOptional);
  for (const [at, plan] of optional.entries()) {
    const listening = listen(broker, plan.transport);
    try {
      await listening;
      opened.push({ plan, listening });
    } catch (error) {
      const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
      if (cause?.code !== 'EADDRINUSE' || (opened.length === 0 && at === optional.length - 1)) {
        await broker.stop();
        throw error;
      }
      tell(shell, `warning: going on without the ${plan.label} listener: ${message}`);
    }
  }
}

/** What the `ready` line says, in the order of the settings. */
export function places(planned: readonly PlannedListener[], opened: readonly Opened[]): Record<string, unknown> {
  const inOrder = opened.toSorted((a, b) => planned.indexOf(a.plan) - planned.indexOf(b.plan));
  return Object.fromEntries(
    inOrder.map(({ plan: { label }, listening }) => [
      label ?? listening.name,
      listening.port ?? listening.address?.path
    ])
  );
}
