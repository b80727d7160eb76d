import type { StreamMessages } from '../host.ts';
import type { MemoryTopics } from '../memory-topics.ts';
import type { SourceType } from '../types.ts';
import { APP_SOURCES } from './app-source.ts';
import { memorySource } from './memory-source.ts';
import { mqttSource } from './mqtt-source.ts';
import { SIMULATOR } from './simulator.ts';

/**
 * The source types that need no adapter, and those of the app.
 * @param own those of the app; its `mqtt` becomes the part of the built-in type that serves other servers
 */
export function builtInSources(
  messages: Pick<StreamMessages, 'watch'> & Partial<Pick<StreamMessages, 'isOwn' | 'retained'>>,
  topics: MemoryTopics,
  own: readonly SourceType[]
): SourceType[] {
  const remote = own.find(({ name }) => name === 'mqtt');
  const others = own.filter((type) => type !== remote);
  return [mqttSource(messages, remote), memorySource(topics), SIMULATOR, ...APP_SOURCES, ...others];
}
