import type { StreamMessages } from './host.ts';
import { APP_SOURCES } from './sources/app-source.ts';
import { mqttSource } from './sources/mqtt-source.ts';
import { SIMULATOR } from './sources/simulator.ts';
import type { SourceType } from './types.ts';

/**
 * The types of sources that are always there, besides those that need something of the service.
 * @param own those of the app: its `mqtt` becomes the part of ours that is for other servers
 */
export function builtInSources(messages: Pick<StreamMessages, 'watch'>, own: readonly SourceType[] = []): SourceType[] {
  const remote = own.find(({ name }) => name === 'mqtt');
  return [mqttSource(messages, remote), SIMULATOR, ...APP_SOURCES];
}
