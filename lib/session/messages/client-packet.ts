import type { TopicAliases } from '../../connection/topic-aliases.ts';
import { encodeMessage } from '../../packets/encode-message.ts';
import type { Message, Variation } from '../../packets/message.ts';
import type { Outlet } from './outlet.ts';

/** Encode a PUBLISH for the client of a session. @returns undefined if the packet is too large for it */
export function encodeForClient(
  { agreement, client }: Outlet,
  aliases: TopicAliases | undefined,
  message: Message,
  variation: Omit<Variation, 'alias' | 'topic'>
): Buffer | undefined {
  const { layout, maxFrame } = agreement;
  const { mountpoint } = client;
  const topic = mountpoint === '' ? undefined : unmounted(message.topic, mountpoint);
  const plain = { ...variation, alias: 0, topic };
  if (aliases !== undefined && layout === 5) {
    const choice = aliases.choose(message.topic);
    if (choice !== 0) {
      const alias = Math.abs(choice);
      const packet = encodeMessage(message, layout, { ...plain, alias, topic: choice > 0 ? '' : topic });
      if (packet.length <= maxFrame) return packet;
      if (choice < 0) aliases.forget(message.topic); // without the alias the packet is three bytes shorter
    }
  }
  const packet = encodeMessage(message, layout, plain);
  return packet.length <= maxFrame ? packet : undefined;
}

/** Remove the mount point from a topic name. */
function unmounted(topic: string, mountpoint: string): string {
  return topic.startsWith(mountpoint) ? topic.slice(mountpoint.length) : topic;
}
