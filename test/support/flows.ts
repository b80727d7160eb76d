import { Broker, engineOf } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type {
  AckPacket,
  Packet,
  ProtocolVersion,
  PublishPacket,
  SubscriptionRequest
} from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, type RawClientOptions, rawClient } from './raw-client.ts';
import { subscribe } from './wire.ts';

/** Starts a broker on a virtual clock that only `clock.advance` moves; disposing of it stops the broker. */
export async function timedBroker(
  options: BrokerOptions = {}
): Promise<{ broker: Broker; clock: VirtualClock } & AsyncDisposable> {
  const clock = new VirtualClock();
  const broker = new Broker({
    sysInterval: 0,
    sysHeartbeat: 0,
    timerResolution: 1,
    memoryHighWatermark: 0,
    clock,
    ...options
  });
  clock.attach(engineOf(broker).services.work);
  await broker.start();
  return {
    broker,
    clock,
    [Symbol.asyncDispose]: async () => {
      clock.detach(engineOf(broker).services.work);
      await broker.stop();
    }
  };
}

/** Connects a client and subscribes it to one filter. */
export async function subscriber(
  broker: Broker,
  filter: { topic: string } & Partial<SubscriptionRequest>,
  options: RawClientOptions = {}
): Promise<RawClient> {
  const client = await rawClient(broker, options);
  client.send(subscribe(1, filter));
  await client.next('suback');
  return client;
}

/** Cuts the connection of a client, and waits until the broker has noticed. */
export async function cutOff(broker: Broker, client: RawClient): Promise<void> {
  const gone = broker.nextEvent('client.disconnected');
  client.cut();
  await gone;
}

/** CONNECT fields of a client whose session outlives its connections. */
export function persistent(clientId: string, version: ProtocolVersion = 5): RawClientOptions {
  return version === 5
    ? { clientId, version, clean: false, properties: { sessionExpiryInterval: 3600 } }
    : { clientId, version, clean: false };
}

/** Builds an acknowledgement. */
export function ack(cmd: AckPacket['cmd'], messageId: number, reasonCode = 0): AckPacket {
  return { cmd, messageId, reasonCode };
}

/** Formats packets as short strings, for comparing sequences: `publish 7 q1 dup retain a/b=payload`, `pubrel 7`, `pubrec 7 0x92`. */
export function summarize(packets: readonly Packet[]): string[] {
  return packets.map((packet) => {
    if (packet.cmd === 'publish') {
      const { messageId, qos, dup, retain, topic, payload } = packet;
      const words = ['publish', messageId, `q${qos}`, dup && 'dup', retain && 'retain', `${topic}=${payload}`];
      return words.filter((word) => word !== undefined && word !== false).join(' ');
    }
    if ('messageId' in packet && 'reasonCode' in packet)
      return `${packet.cmd} ${packet.messageId}${packet.reasonCode === 0 ? '' : ` 0x${packet.reasonCode.toString(16)}`}`;
    return packet.cmd;
  });
}

/** Returns the only PUBLISH received since the last returned packet. */
export async function onlyPublish(client: RawClient): Promise<PublishPacket> {
  const packets = await client.rest();
  const [first] = packets;
  if (packets.length !== 1 || first?.cmd !== 'publish')
    throw new Error(`expected one PUBLISH, got ${JSON.stringify(summarize(packets))}`);
  return first;
}
