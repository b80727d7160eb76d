import type { StreamMessages } from '../host.ts';
import type { MemoryTopics } from '../memory-topics.ts';
import type { SinkType } from '../types.ts';
import { memorySink } from './memory-sink.ts';
import { mqttSink } from './mqtt-sink.ts';
import { LOG_SINK, NOP_SINK } from './plain-sinks.ts';

/**
 * The sink types that need no adapter, and those of the app.
 * @param own those of the app; its `mqtt` becomes the part of the built-in type that serves other servers
 */
export function builtInSinks(
  messages: Pick<StreamMessages, 'publish' | 'isOwn'>,
  topics: MemoryTopics,
  own: readonly SinkType[]
): SinkType[] {
  const remote = own.find(({ name }) => name === 'mqtt');
  const others = own.filter((type) => type !== remote);
  return [mqttSink({ messages, remote: () => remote }), memorySink(topics), LOG_SINK, NOP_SINK, ...others];
}
