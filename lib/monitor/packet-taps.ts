import { channel } from 'node:diagnostics_channel';
import type { ClientInfo } from '../records/client.ts';

const PACKET_RECEIVED = channel('embermq:packet:received');
const PACKET_SENT = channel('embermq:packet:sent');

/**
 * What a subscriber of the diagnostics channels `embermq:packet:received` and `embermq:packet:sent` gets. If the subscriber throws, that is
 * an uncaught exception of the process, as for every diagnostics channel of Node.
 */
export interface PacketTap {
  /** The `Broker`. */
  readonly broker: object;
  readonly client: ClientInfo;
  /** The whole packet. Copy it to keep it; `decodePacket(bytes, client.protocolVersion)` decodes it. */
  readonly bytes: Buffer;
}

/** Publishes packets on the diagnostics channels while somebody has subscribed to them. */
export class PacketTaps {
  /** Somebody watches packets. */
  isOpen = false;
  readonly #broker: object;
  readonly #onChange: () => void;

  /** @param onChange called when `isOpen` has changed */
  constructor(broker: object, onChange: () => void) {
    this.#broker = broker;
    this.#onChange = onChange;
  }

  /** See whether somebody watches packets now. */
  look(): void {
    const isOpen = PACKET_RECEIVED.hasSubscribers || PACKET_SENT.hasSubscribers;
    if (isOpen === this.isOpen) return;
    this.isOpen = isOpen;
    this.#onChange();
  }

  received({ session }: { readonly session: ClientInfo }, bytes: Buffer): void {
    PACKET_RECEIVED.publish({ broker: this.#broker, client: session, bytes } satisfies PacketTap);
  }

  sent({ session }: { readonly session: ClientInfo }, bytes: Buffer): void {
    PACKET_SENT.publish({ broker: this.#broker, client: session, bytes } satisfies PacketTap);
  }
}
