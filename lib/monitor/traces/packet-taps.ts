import { channel } from 'node:diagnostics_channel';
import type { ProtocolVersion } from '../../packets/types.ts';
import type { ClientInfo } from '../../records/client.ts';

const PACKET_RECEIVED = channel('embermq:packet:received');
const PACKET_SENT = channel('embermq:packet:sent');

/**
 * The message of the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. If a subscriber throws, the error is an
 * uncaught exception of the process, as for every diagnostics channel of Node.
 */
export interface PacketTap {
  /** The `Broker` that received or sent the packet. */
  readonly broker: object;
  /** The client that sent the packet, or to which it was sent. */
  readonly client: ClientInfo;
  /** The complete packet. Copy it to use it later. `decodePacket(bytes, client.protocolVersion)` of `embermq/decoder` decodes it. */
  readonly bytes: Buffer;
}

/** The part of a session that observers of packets use. */
export interface TappedSession {
  readonly client: ClientInfo;
  readonly protocolVersion: ProtocolVersion;
  readonly connection:
    | {
        readonly reader: {
          /** The topic names, as they are routed, of the topic aliases that the client has set. */
          readonly topics: { topicOf(alias: number): string | undefined };
        };
      }
    | undefined;
  /** The topic names, as they are routed, of the topic aliases that the broker has set. */
  readonly outlet: { topicOf(alias: number): string | undefined };
}

/** Receives the packets of all connections, in addition to the diagnostics channels. It must not throw. */
export interface PacketObserver {
  /** Called when a packet has arrived and is not handled yet. */
  received(session: TappedSession, bytes: Buffer): void;
  /** Called when a packet was added to the output of a connection. */
  sent(session: TappedSession, bytes: Buffer): void;
}

/** Publishes packets on the diagnostics channels while they have subscribers, and passes them to an observer. */
export class PacketTaps {
  /** True if at least one of the channels has a subscriber, or there is an observer. */
  isOpen = false;
  readonly #broker: object;
  readonly #onChange: () => void;
  #observer: PacketObserver | undefined = undefined;

  /** @param onChange called when `isOpen` has changed */
  constructor(broker: object, onChange: () => void) {
    this.#broker = broker;
    this.#onChange = onChange;
  }

  /** Update `isOpen`. */
  look(): void {
    const isOpen = PACKET_RECEIVED.hasSubscribers || PACKET_SENT.hasSubscribers || this.#observer !== undefined;
    if (isOpen === this.isOpen) return;
    this.isOpen = isOpen;
    this.#onChange();
  }

  /** Pass all packets to an observer from now on. @param observer undefined: stop passing them */
  observe(observer: PacketObserver | undefined): void {
    this.#observer = observer;
    this.look();
  }

  received({ session }: { readonly session: TappedSession }, bytes: Buffer): void {
    this.#observer?.received(session, bytes);
    PACKET_RECEIVED.publish({ broker: this.#broker, client: session.client, bytes } satisfies PacketTap);
  }

  sent({ session }: { readonly session: TappedSession }, bytes: Buffer): void {
    this.#observer?.sent(session, bytes);
    PACKET_SENT.publish({ broker: this.#broker, client: session.client, bytes } satisfies PacketTap);
  }
}
