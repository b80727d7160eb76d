import assert from 'node:assert/strict';
import { Broker, engineOf } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
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
import type { TransportInfo } from '../../lib/records/client.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, rawClient } from './raw-client.ts';

type Filter = string | ({ readonly topic: string } & Partial<SubscriptionRequest>);

/** Starts a broker with millisecond timers and without the memory watch. A virtual clock waits for its pending work. */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const broker = new Broker({ timerResolution: 1, memoryHighWatermark: 0, ...options });
  if (options.clock instanceof VirtualClock) options.clock.attach(engineOf(broker).services.work);
  return broker.start();
}

let lastClient = 0;

/** Builds a CONNECT with defaults: clean start, no keep alive, a unique client id. */
export function connect(version: ProtocolVersion, given: Partial<ConnectPacket> = {}): ConnectPacket {
  const clientId = `wire${++lastClient}`;
  return { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean: true, keepalive: 0, ...given };
}

/** Builds a SUBSCRIBE; a filter given as a string is requested at QoS 0 without options. */
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

/** Builds an UNSUBSCRIBE. */
export function unsubscribe(messageId: number, ...unsubscriptions: string[]): UnsubscribePacket {
  return { cmd: 'unsubscribe', messageId, unsubscriptions };
}

/** Builds a PUBLISH; QoS 0 and not retained by default. */
export function publish(
  topic: string,
  payload: string | Buffer = '',
  more: Partial<Omit<PublishPacket, 'cmd' | 'topic' | 'payload'>> = {}
): PublishPacket {
  return { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 0, dup: false, retain: false, ...more };
}

/** Sends packets in one write. */
export function sendAll(client: RawClient, ...packets: readonly Packet[]): void {
  client.send(Buffer.concat(packets.map((packet) => encode(packet, client.version))));
}

/** Subscribes and returns the codes of the SUBACK. */
export async function granted(client: RawClient, ...args: Parameters<typeof subscribe>): Promise<number[]> {
  client.send(subscribe(...args));
  return (await client.next('suback')).granted;
}

/** Sends CONNECT and returns the refusing CONNACK, after which the connection is closed. */
export async function refusedConnect(
  broker: Broker,
  options: Partial<ConnectPacket> & { version?: ProtocolVersion; meta?: Partial<TransportInfo> } = {}
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

/** Sends PINGREQ and returns the packets that arrived before PINGRESP. */
export async function rest(client: RawClient): Promise<Packet[]> {
  client.send({ cmd: 'pingreq' });
  const packets: Packet[] = [];
  for (let packet = await client.next(); packet.cmd !== 'pingresp'; packet = await client.next()) packets.push(packet);
  return packets;
}

/** Checks that no packet has arrived since the last one read, and that the connection is open. */
export async function nothing(client: RawClient): Promise<void> {
  assert.deepEqual(await rest(client), []);
}

/** Returns the payloads, as strings, of the PUBLISH packets received since the last packet read. */
export async function payloads(client: RawClient): Promise<string[]> {
  return (await rest(client)).flatMap((packet) => (packet.cmd === 'publish' ? [String(packet.payload)] : []));
}

/**
 * Checks that the broker closes the connection: after a DISCONNECT with this code for 5.0, without one for 3.x.
 * @returns the Reason String
 */
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

/** Waits until everything has happened that needs neither a hook nor a timer. */
export async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Creates a promise and the functions that settle it, for a hook whose answer the test defers. */
export function withResolvers<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | PromiseLike<T>) => void;
} {
  let resolve!: (value: T | PromiseLike<T>) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
