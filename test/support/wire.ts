import assert from 'node:assert/strict';
import { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/options.ts';
import type { ConnectionMeta } from '../../lib/client-info.ts';
import { encode } from '../../lib/packets/encode.ts';
import type {
  ConnackPacket,
  ConnectPacket,
  Packet,
  Properties,
  ProtocolVersion,
  PublishPacket,
  SubscribePacket,
  SubscriptionRequest,
  UnsubscribePacket
} from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, rawClient } from './raw-client.ts';

type Filter = string | ({ readonly topic: string } & Partial<SubscriptionRequest>);

/** A started broker with timers to the millisecond, blind to the memory of the process. A virtual clock waits for its work. */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const broker = new Broker({ timerResolution: 1, memoryHighWatermark: 0, ...options });
  if (options.clock instanceof VirtualClock) options.clock.attach(broker.work);
  return broker.start();
}

let lastClient = 0;

/** A CONNECT with what a test does not care for filled in: clean start, no keep alive, a client id of its own. */
export function connect(version: ProtocolVersion, given: Partial<ConnectPacket> = {}): ConnectPacket {
  const clientId = `wire${++lastClient}`;
  return { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean: true, keepalive: 0, ...given };
}

/** A SUBSCRIBE; a filter given as text is asked for at QoS 0 without options. */
export function subscribe(
  messageId: number,
  filters: Filter | readonly Filter[],
  properties?: Properties
): SubscribePacket {
  const subscriptions = [filters].flat().map((filter): SubscriptionRequest => {
    const given = typeof filter === 'string' ? { topic: filter } : filter;
    return { qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0, ...(given as { topic: string }) };
  });
  return { cmd: 'subscribe', messageId, subscriptions, properties };
}

/** An UNSUBSCRIBE. */
export function unsubscribe(messageId: number, ...unsubscriptions: string[]): UnsubscribePacket {
  return { cmd: 'unsubscribe', messageId, unsubscriptions };
}

/** A PUBLISH; QoS 0 and not retained unless told otherwise. */
export function publish(
  topic: string,
  payload: string | Buffer = '',
  more: Partial<Omit<PublishPacket, 'cmd' | 'topic' | 'payload'>> = {}
): PublishPacket {
  return { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 0, dup: false, retain: false, ...more };
}

/** Send packets in one write. */
export function sendAll(client: RawClient, ...packets: readonly Packet[]): void {
  client.send(Buffer.concat(packets.map((packet) => encode(packet, client.version))));
}

/** Subscribe and read the SUBACK. */
export async function granted(client: RawClient, ...args: Parameters<typeof subscribe>): Promise<number[]> {
  client.send(subscribe(...args));
  return (await client.next('suback')).granted;
}

/** Send CONNECT and read the refusing CONNACK, behind which the connection is closed. */
export async function refusedConnect(
  broker: Broker,
  options: Partial<ConnectPacket> & { version?: ProtocolVersion; meta?: Partial<ConnectionMeta> } = {}
): Promise<ConnackPacket> {
  const { version = 5, meta, ...given } = options;
  const client = await rawClient(broker, { version, meta, connect: false });
  client.send(connect(version, given));
  const connack = await client.next('connack');
  assert.notEqual(connack.reasonCode, 0, 'the CONNECT was accepted');
  await client.closed();
  assert.equal(client.received.length, 1);
  return connack;
}

/** Come to the end of what the broker has to say: a PINGREQ is answered, and these packets came before the answer. */
export async function rest(client: RawClient): Promise<Packet[]> {
  client.send({ cmd: 'pingreq' });
  const packets: Packet[] = [];
  for (let packet = await client.next(); packet.cmd !== 'pingresp'; packet = await client.next()) packets.push(packet);
  return packets;
}

/** Nothing came since the last packet read, and the connection lives. */
export async function nothing(client: RawClient): Promise<void> {
  assert.deepEqual(await rest(client), []);
}

/** Payloads, as text, of the PUBLISH packets that came since the last packet read. */
export async function payloads(client: RawClient): Promise<string[]> {
  return (await rest(client)).flatMap((packet) => (packet.cmd === 'publish' ? [String(packet.payload)] : []));
}

/** The broker closes the connection: v5 is told why just before, 3.x is told nothing. @returns the Reason String */
export async function refused(client: RawClient, reasonCode: number): Promise<string | undefined> {
  await client.closed();
  const last = client.received.at(-1);
  if (client.version !== 5) {
    assert.notEqual(last?.cmd, 'disconnect');
    return undefined;
  }
  assert.ok(last?.cmd === 'disconnect', `closed without DISCONNECT; the last packet was ${JSON.stringify(last)}`);
  const got = `0x${last.reasonCode.toString(16)}`;
  assert.equal(last.reasonCode, reasonCode, `DISCONNECT ${got}: ${last.properties?.reasonString}`);
  return last.properties?.reasonString;
}

/** Let everything happen that does not wait for a hook or a timer. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A promise and what settles it: the answer of a hook that a test holds back. */
export function held<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T | PromiseLike<T>) => void } {
  let resolve!: (value: T | PromiseLike<T>) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
