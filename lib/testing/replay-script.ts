import { decodeServerPacket } from '../packets/decode-server.ts';
import { encode } from '../packets/encode.ts';
import type { AckPacket, ConnectPacket, ProtocolVersion, PublishPacket } from '../packets/types.ts';
import { decodeFrame, type RecordedEvent, type Side } from './recording.ts';

/** An acknowledgement of the client, with its time. */
interface RecordedAck {
  readonly ms: number;
  readonly packet: AckPacket;
}

/** A message at QoS 1 or 2 that the client has received, and its acknowledgements. */
export interface RecordedDelivery {
  /** PUBACK or PUBREC; undefined: the client has not acknowledged it. */
  ack: RecordedAck | undefined;
  pubcomp: RecordedAck | undefined;
}

/** An action of a client, with its time. */
export type ScriptAction = { readonly ms: number; readonly order: number } & (
  | { readonly kind: 'open' }
  /** `plain` is the message without its topic alias. */
  | { readonly kind: 'send'; readonly bytes: Buffer; readonly alias: number; readonly plain: Buffer }
  | { readonly kind: 'end'; readonly by: Side; readonly isAbrupt: boolean }
);

/** Resolves the topic aliases of one direction. */
export class AliasTable {
  readonly #topics = new Map<number, string>();

  /** The topic of a message, also if it has only an alias. */
  topicOf({ topic, properties }: PublishPacket): string {
    const alias = properties?.topicAlias;
    if (alias === undefined) return topic;
    if (topic !== '') this.#topics.set(alias, topic);
    return this.#topics.get(alias) ?? '';
  }
}

/** The same message has the same key, whatever its packet id and alias are. */
export function keyOf(topic: string, { qos, payload }: PublishPacket): string {
  return `${qos} ${topic}\0${payload.toString('latin1')}`;
}

/**
 * The actions of one connection of a recording in a replay.
 *
 * Acknowledgements of the client are not among its actions: their packet ids are those that the broker had chosen. They belong to the
 * messages that they acknowledge.
 */
export class ReplayScript {
  readonly connection: number;
  /** The client id of the CONNECT, or the one that the broker assigned; empty if unknown. */
  clientId = '';
  version: ProtocolVersion = 5;
  readonly actions: ScriptAction[] = [];
  /** The messages that no message of the replay has taken yet, by `keyOf`. */
  readonly #deliveries = new Map<string, RecordedDelivery[]>();
  readonly #sentAliases = new AliasTable();
  readonly #receivedAliases = new AliasTable();
  /** The message that has a packet id of the broker now. */
  readonly #byPacketId = new Map<number, RecordedDelivery>();
  #connect: { readonly packet: ConnectPacket; readonly at: number } | undefined;
  #hasDisconnected = false;

  constructor(connection: number) {
    this.connection = connection;
  }

  /** Take the next event of the recording. @param order its position among the events of all connections */
  add({ ms, opened, sent, received, data, ended }: RecordedEvent, order: number): void {
    if (opened !== undefined) this.actions.push({ ms, order, kind: 'open' });
    if (ended !== undefined) this.actions.push({ ms, order, kind: 'end', by: ended, isAbrupt: !this.#hasDisconnected });
    if (data === undefined) return;
    const bytes = Buffer.from(data, 'base64');
    if (sent !== undefined) this.#addSent(ms, order, bytes, sent === 'unreadable');
    else if (received !== undefined && received !== 'unreadable') this.#addReceived(bytes);
  }

  /** The first message of the recording with this key that was not taken yet. */
  take(key: string): RecordedDelivery | undefined {
    return this.#deliveries.get(key)?.shift();
  }

  #addSent(ms: number, order: number, bytes: Buffer, isUnreadable: boolean): void {
    const packet = isUnreadable ? undefined : decodeFrame(bytes, this.version);
    switch (packet?.cmd) {
      case 'puback':
      case 'pubrec':
      case 'pubcomp':
        this.#addAck({ ms, packet });
        return;
      case 'connect':
        this.version = packet.protocolVersion;
        this.clientId = packet.clientId;
        this.#connect = { packet, at: this.actions.length };
        break;
      case 'disconnect':
        this.#hasDisconnected = true;
    }
    const alias = packet?.cmd === 'publish' ? (packet.properties?.topicAlias ?? 0) : 0;
    const plain = packet?.cmd === 'publish' && alias > 0 ? this.#withoutAlias(packet) : bytes;
    this.actions.push({ ms, order, kind: 'send', bytes, alias, plain });
  }

  #addAck(ack: RecordedAck): void {
    const delivery = this.#byPacketId.get(ack.packet.messageId);
    if (delivery === undefined) return; // of a message of an earlier connection: the replay answers at once
    if (ack.packet.cmd === 'pubcomp') delivery.pubcomp = ack;
    else delivery.ack = ack;
  }

  /** For a broker that allows fewer aliases than that of the recording. */
  #withoutAlias(packet: PublishPacket): Buffer {
    const { topicAlias: _alias, ...properties } = packet.properties ?? {};
    return encode({ ...packet, topic: this.#sentAliases.topicOf(packet), properties }, this.version);
  }

  #addReceived(bytes: Buffer): void {
    const packet = decodeFrame(bytes, this.version, decodeServerPacket);
    if (packet?.cmd === 'connack') this.#assign(packet.properties?.assignedClientIdentifier);
    if (packet?.cmd !== 'publish') return;
    const topic = this.#receivedAliases.topicOf(packet);
    if (packet.messageId === undefined) return;
    const delivery = { ack: undefined, pubcomp: undefined };
    const key = keyOf(topic, packet);
    const known = this.#deliveries.get(key);
    if (known === undefined) this.#deliveries.set(key, [delivery]);
    else known.push(delivery);
    this.#byPacketId.set(packet.messageId, delivery);
  }

  /** The client asks for the id that it got in the recording: the broker would assign another one. */
  #assign(clientId: string | undefined): void {
    if (clientId === undefined || this.#connect === undefined) return;
    const { packet, at } = this.#connect;
    this.clientId = clientId;
    const { ms, order } = this.actions[at];
    const bytes = encode({ ...packet, clientId }, this.version);
    this.actions[at] = { ms, order, kind: 'send', bytes, alias: 0, plain: bytes };
  }
}
