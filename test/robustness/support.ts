import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import type { ConnectPacket, Packet, ProtocolVersion, QoS } from '../../lib/packets/types.ts';
import { Peer, turns, type WireOptions } from '../fuzz/wire.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A broker, its virtual clock, and the failures it reported. */
export interface Bed extends AsyncDisposable {
  readonly broker: Broker;
  readonly clock: ManualClock;
  readonly failures: { readonly error: Error; readonly during: string }[];
  /** The reason for which each client disconnected, by client id. */
  readonly reasons: Map<string, string>;
  /** Lets time pass, and then waits for the turns of the broker. */
  pass(ms: number): Promise<void>;
}

/** Starts a broker in virtual time. */
export async function startTestBed(options: BrokerOptions = {}): Promise<Bed> {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const broker = new Broker({ clock, timerResolution: 10, memoryHighWatermark: 0, ...options });
  const failures: Bed['failures'] = [];
  const reasons = new Map<string, string>();
  broker.on('error', (event) => failures.push(event));
  broker.on('client.disconnected', ({ client, reason }) => reasons.set(client.clientId, reason));
  await broker.start();
  return {
    broker,
    clock,
    failures,
    reasons,
    pass: async (ms) => {
      clock.advance(ms);
      await turns(2);
    },
    [Symbol.asyncDispose]: async () => {
      const stopped = broker.stop({ timeoutMs: 0, wills: 'keep' });
      await turns(3);
      await stopped;
    }
  };
}

interface ClientOptions extends WireOptions, Partial<Omit<ConnectPacket, 'cmd' | 'protocolVersion'>> {
  /** Default 5. */
  readonly version?: ProtocolVersion;
}

let lastClient = 0;

/** Connects a client. `received` contains its CONNACK or another answer. */
export async function client(broker: Broker, options: ClientOptions = {}): Promise<Peer> {
  const { version = 5, highWaterMark, isListening, emitClose, autoDestroy, onWrite, ...rest } = options;
  const wire: Record<string, unknown> = { highWaterMark, isListening, emitClose, autoDestroy, onWrite };
  for (const name of Object.keys(wire)) if (wire[name] === undefined) delete wire[name];
  const peer = new Peer(broker, version, wire);
  peer.say(connect({ version, ...rest }));
  await turns(2);
  peer.take();
  return peer;
}

/** Builds a CONNECT with defaults for every field that the test does not set. */
export function connect(options: ClientOptions = {}): ConnectPacket {
  const { version = 5, ...rest } = options;
  const clientId = `client${++lastClient}`;
  return { cmd: 'connect', protocolVersion: version, bridge: false, clientId, clean: true, keepalive: 0, ...rest };
}

export function publish(topic: string, payload: string | Buffer, qos: QoS = 0, messageId?: number): Packet {
  return { cmd: 'publish', topic, payload: Buffer.from(payload), qos, dup: false, retain: false, messageId };
}

export function subscribe(messageId: number, qos: QoS, ...filters: readonly string[]): Packet {
  const subscriptions = filters.map((topic) => ({
    topic,
    qos,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0 as const
  }));
  return { cmd: 'subscribe', messageId, subscriptions };
}

/** Returns the names of the packets received since the last call. */
export function kinds(peer: Peer): string[] {
  return peer.take().map(({ cmd }) => cmd);
}

/** Returns the payloads of the messages received since the last call. */
export function payloads(peer: Peer): string[] {
  return peer.take().flatMap((packet) => (packet.cmd === 'publish' ? [packet.payload.toString()] : []));
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Returns the bytes of heap and buffers in use after a collection. */
export function memory(): number {
  collect();
  collect(); // the memory of buffers is released in the background, at the latest by the next collection
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Tell whether the connection of a client works: its PINGREQ is answered in the next turn. */
export async function isServed(peer: Peer): Promise<boolean> {
  peer.take();
  peer.say({ cmd: 'pingreq' });
  await turns(2);
  return peer.take().some(({ cmd }) => cmd === 'pingresp');
}
