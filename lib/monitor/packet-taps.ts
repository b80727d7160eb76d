import { channel } from 'node:diagnostics_channel';
import type { ClientInfo } from '../records/client.ts';

const PACKET_RECEIVED = channel('embermq:packet:received');
const PACKET_SENT = channel('embermq:packet:sent');

/**
 * The message of the diagnostics channels `embermq:packet:received` and `embermq:packet:sent`. If a subscriber throws, the error is an
 * uncaught exception of the process, as for every diagnostics channel of Node.
 */
export interface PacketTap {
  /** The `Broker` that received or sent the packet. */
  readonly broker: object;
  readonly client: ClientInfo;
  /** The complete packet. Copy it to use it later. `decodePacket(bytes, client.protocolVersion)` of `embermq/decoder` decodes it. */
  readonly bytes: Buffer;
}

/** Publishes packets on the diagnostics channels while they have subscribers. */
export class PacketTaps {
  /** At least one of the channels has a subscriber. */
  isOpen = false;
  readonly #broker: object;
  readonly #onChange: () => void;

  /** @param onChange called when `isOpen` has changed */
  constructor(broker: object, onChange: () => void) {
    this.#broker = broker;
    this.#onChange = onChange;
  }

  /** Update `isOpen`. */
  look(): void {
    const isOpen = PACKET_RECEIVED.hasSubscribers || PACKET_SENT.hasSubscribers;
    if (isOpen === this.isOpen) return;
    this.isOpen = isOpen;
    this.#onChange();
  }

  received({ session }: { readonly session: { readonly client: ClientInfo } }, bytes: Buffer): void {
    PACKET_RECEIVED.publish({ broker: this.#broker, client: session.client, bytes } satisfies PacketTap);
  }

  sent({ session }: { readonly session: { readonly client: ClientInfo } }, bytes: Buffer): void {
    PACKET_SENT.publish({ broker: this.#broker, client: session.client, bytes } satisfies PacketTap);
  }
}
