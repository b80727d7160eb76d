// A client of a replay sends what its client has sent, at the same times. Its acknowledgements cannot be sent again as
// they are, because the broker chooses packet ids, and may send messages in another order. For each message that the
// broker sends, the same message is looked up in the recording: it is acknowledged when that one was, or not at all. A
// message that is not in the recording is acknowledged at once.

import type { Duplex } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { truncated } from '../base/errors.ts';
import { decodeServerPacket } from '../packets/decode-server.ts';
import { encode } from '../packets/encode.ts';
import { type AckPacket, type ConnackPacket, PacketType, type PublishPacket, type QoS } from '../packets/types.ts';
import type { VirtualClock } from './clock.ts';
import type { Link } from './link.ts';
import { decodeFrame, FrameSplitter, readRecording } from './recording.ts';
import { AliasTable, keyOf, type RecordedDelivery, ReplayScript, type ScriptAction } from './replay-script.ts';

/** Options of `kit.replay`. */
export interface ReplayOptions {
  /** True: replay the connections of this client id. Default: all. Leave out the app under test if it connects itself. */
  readonly clients?: (clientId: string) => boolean;
}

/** A message that the broker has sent to a client of a replay. */
export interface ReplayedDelivery {
  /** Milliseconds since the start of the replay. */
  readonly atMs: number;
  /** The client id in the recording. */
  readonly clientId: string;
  /** Number of the connection in the recording. */
  readonly connection: number;
  /** The topic name, also if the broker sent a topic alias. */
  readonly topic: string;
  /** The payload, as a copy. */
  readonly payload: Buffer;
  /** The payload as UTF-8. */
  readonly text: string;
  /** The QoS of the delivery. */
  readonly qos: QoS;
  /** The retain flag of the delivery. */
  readonly retain: boolean;
  /** True if the broker sent the message again. */
  readonly dup: boolean;
}

/** A connection that the broker has refused or closed, before its client closed it in the recording. */
export interface ReplayedEnd {
  /** Milliseconds since the start of the replay. */
  readonly atMs: number;
  /** The client id in the recording. */
  readonly clientId: string;
  /** Number of the connection in the recording. */
  readonly connection: number;
  /** The reason code of the CONNACK, or of the DISCONNECT (MQTT 5.0); undefined if the broker sent neither. */
  readonly reasonCode: number | undefined;
}

/** The deliveries of the broker in a replay. The same recording gives the same log each time. */
export interface ReplayLog {
  /** The messages in the order in which they were sent. */
  readonly deliveries: readonly ReplayedDelivery[];
  /** The connections that the broker has refused or closed. */
  readonly ends: readonly ReplayedEnd[];
  /** Frames of clients that were not sent, because the broker had closed their connection earlier than in the recording. */
  readonly unsentFrames: number;
  /** Length of the recording in milliseconds. */
  readonly durationMs: number;
  /** One line for each delivery and each end, in their order, to compare with a file. */
  toString(): string;
}

/** The parts of a kit that a replay uses. */
interface ReplayKit {
  readonly clock: VirtualClock;
  stream(): Duplex;
  link(stream: Duplex): Link;
}

/** See `TestBroker.replay`. @param text the content of the file @param name the file, for messages */
export async function replay(kit: ReplayKit, text: string, name: string, options: ReplayOptions): Promise<ReplayLog> {
  const scripts = new Map<number, ReplayScript>();
  const events = readRecording(text, name);
  for (const [order, event] of events.entries()) {
    const script = scripts.get(event.connection) ?? new ReplayScript(event.connection);
    scripts.set(event.connection, script);
    script.add(event, order);
  }
  const startMs = events[0]?.ms ?? 0;
  const log = new Log(kit.clock);
  const steps = [...scripts.values()]
    .filter(({ clientId }) => options.clients?.(clientId) ?? true)
    .flatMap((script) => {
      const client = new ReplayedClient(kit, script, log, startMs);
      return script.actions.map((action) => ({ client, action }));
    })
    .sort((one, other) => one.action.order - other.action.order);
  await run(steps, kit.clock, startMs);
  const durationMs = (events.at(-1)?.ms ?? 0) - startMs;
  await kit.clock.advance(Math.max(durationMs - log.ms, 0));
  return log.result(durationMs);
}

/** A step of a replay. */
interface Step {
  readonly client: ReplayedClient;
  readonly action: ScriptAction;
}

/** Take the steps at their times. One timer is armed at a time, so that a long recording does not fill the clock. */
async function run(steps: readonly Step[], clock: VirtualClock, startMs: number): Promise<void> {
  const { internal } = clock;
  const beganMs = clock.monotonic();
  const arm = (at: number): void => {
    const step = steps[at];
    if (step === undefined) return;
    const delayMs = beganMs + step.action.ms - startMs - clock.monotonic();
    internal.setTimeout(() => {
      step.client.act(step.action);
      arm(at + 1);
    }, delayMs);
  };
  arm(0);
  const last = steps.at(-1);
  if (last !== undefined) await clock.advance(last.action.ms - startMs);
}

/** Gathers the log of a replay. */
class Log {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #deliveries: ReplayedDelivery[] = [];
  readonly #ends: ReplayedEnd[] = [];
  readonly #lines: string[] = [];
  unsentFrames = 0;
  /** True after the replay: what follows, such as the end of the kit, does not belong to it. */
  #isComplete = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonic();
  }

  /** Milliseconds since the start. */
  get ms(): number {
    return this.#clock.monotonic() - this.#startMs;
  }

  delivered({ clientId, connection }: ReplayScript, topic: string, packet: PublishPacket): void {
    if (this.#isComplete) return;
    const { qos, retain, dup } = packet;
    const payload = Buffer.from(packet.payload);
    const text = payload.toString();
    this.#deliveries.push({ atMs: this.ms, clientId, connection, topic, payload, text, qos, retain, dup });
    const flags = `QoS ${qos}${retain ? ', retained' : ''}${dup ? ', again' : ''}`;
    const shown = payload.equals(Buffer.from(text)) ? JSON.stringify(text) : `0x${payload.toString('hex')}`;
    this.#line(clientId, connection, `${topic}  ${truncated(shown, 200)}  ${flags}`);
  }

  ended({ clientId, connection }: ReplayScript, reasonCode: number | undefined): void {
    if (this.#isComplete) return;
    this.#ends.push({ atMs: this.ms, clientId, connection, reasonCode });
    const reason = reasonCode === undefined ? '' : `, reason code 0x${reasonCode.toString(16).padStart(2, '0')}`;
    this.#line(clientId, connection, `closed by the broker${reason}`);
  }

  result(durationMs: number): ReplayLog {
    this.#isComplete = true;
    const [deliveries, ends, lines, unsentFrames] = [this.#deliveries, this.#ends, this.#lines, this.unsentFrames];
    return { deliveries, ends, unsentFrames, durationMs, toString: () => lines.map((line) => `${line}\n`).join('') };
  }

  #line(clientId: string, connection: number, text: string): void {
    const ms = String(this.ms).padStart(8);
    this.#lines.push(`${ms} ms  ${clientId === '' ? `connection ${connection}` : clientId}  ${text}`);
  }
}

/** The client of one connection. */
class ReplayedClient {
  readonly #kit: ReplayKit;
  readonly #script: ReplayScript;
  readonly #log: Log;
  /** The time of the recording at which the clock is 0. */
  readonly #offsetMs: number;
  readonly #aliases = new AliasTable();
  /** Messages at QoS 2 that wait for PUBREL, by the packet id of the broker. */
  readonly #released = new Map<number, RecordedDelivery | undefined>();
  #stream: Duplex | undefined;
  #topicAliasMaximum = 0;
  #reasonCode: number | undefined;
  #isOpen = false;
  #isEnding = false;

  constructor(kit: ReplayKit, script: ReplayScript, log: Log, startMs: number) {
    this.#kit = kit;
    this.#script = script;
    this.#log = log;
    this.#offsetMs = startMs - kit.clock.monotonic();
  }

  act(action: ScriptAction): void {
    if (action.kind === 'open') this.#open();
    else if (action.kind === 'end') this.#end(action);
    else if (!this.#isOpen) this.#log.unsentFrames++;
    else {
      const { bytes, alias, plain } = action;
      if (bytes[0] >> 4 === PacketType.disconnect) this.#isEnding = true;
      this.#stream?.write(alias > this.#topicAliasMaximum ? plain : bytes);
    }
  }

  #open(): void {
    const stream = this.#kit.stream();
    this.#stream = stream;
    this.#isOpen = true;
    const frames = new FrameSplitter((bytes, isFrame) => isFrame && this.#receive(bytes));
    stream.on('data', (chunk: Buffer) => frames.take(chunk));
    stream.on('error', () => {}); // the kit is not reachable
    stream.on('close', () => this.#closed());
    stream.on('end', () => {
      this.#closed();
      stream.end();
    });
  }

  #closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (!this.#isEnding) this.#log.ended(this.#script, this.#reasonCode);
  }

  #end({ by, isAbrupt }: ScriptAction & { readonly kind: 'end' }): void {
    if (!this.#isOpen || this.#stream === undefined) return;
    this.#isEnding = true;
    if (by === 'client' && !isAbrupt) this.#stream.end();
    else this.#kit.link(this.#stream).cut(); // the broker of the recording may have had another reason to close it
  }

  #receive(bytes: Buffer): void {
    const packet = decodeFrame(bytes, this.#script.version, decodeServerPacket);
    if (packet?.cmd === 'connack') this.#connected(packet);
    else if (packet?.cmd === 'publish') this.#delivered(packet);
    else if (packet?.cmd === 'disconnect') this.#reasonCode = packet.reasonCode;
    else if (packet?.cmd === 'pubrel') {
      const { messageId } = packet;
      const recorded = this.#released.get(messageId);
      this.#released.delete(messageId);
      if (recorded !== undefined && recorded.pubcomp === undefined) return; // it never came
      this.#acknowledge({ cmd: 'pubcomp', messageId, reasonCode: 0 }, recorded?.pubcomp?.ms);
    }
  }

  #connected({ reasonCode, properties }: ConnackPacket): void {
    if (reasonCode !== 0) this.#reasonCode = reasonCode;
    this.#topicAliasMaximum = properties?.topicAliasMaximum ?? 0;
  }

  #delivered(packet: PublishPacket): void {
    const topic = this.#aliases.topicOf(packet);
    this.#log.delivered(this.#script, topic, packet);
    const { qos, messageId } = packet;
    if (messageId === undefined) return;
    const recorded = this.#script.take(keyOf(topic, packet));
    if (qos === 2) this.#released.set(messageId, recorded);
    const reasonCode = recorded?.ack?.packet.reasonCode ?? 0;
    if (recorded !== undefined && recorded.ack === undefined) return; // the client has not acknowledged it
    this.#acknowledge({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode }, recorded?.ack?.ms);
  }

  /** Send an acknowledgement at the time of the recording, or at once if that is over. */
  #acknowledge(packet: AckPacket, recordedMs: number | undefined): void {
    const { clock } = this.#kit;
    const delayMs = recordedMs === undefined ? 0 : recordedMs - this.#offsetMs - clock.monotonic();
    const send = (): void => {
      if (this.#isOpen) this.#stream?.write(encode(packet, this.#script.version));
    };
    if (delayMs <= 0) send();
    else clock.internal.setTimeout(send, delayMs);
  }
}
