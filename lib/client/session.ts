import type { PublishPacket } from '../packets/types.ts';

/** A message sent and not yet acknowledged to the end. */
export interface Outgoing {
  readonly packet: PublishPacket;
  /** The PUBREC came: a PUBREL is what is repeated, not the message. */
  isReleased: boolean;
}

const MAX_PACKET_ID = 65_535;

/**
 * What a client has to remember from one connection to the next [MQTT-4.1.0-1]. Pass it on as the option `session` of the next connect.
 */
export class ClientSession {
  /** In the order of sending, which is the order of repeating [MQTT-4.6.0-1]. */
  readonly outgoing = new Map<number, Outgoing>();
  /** Packet ids of QoS 2 messages that were handed over and wait for their PUBREL; the value tells whether the PUBREC went out. */
  readonly incoming = new Map<number, boolean>();
  readonly #requests = new Set<number>();
  #lastId = 0;

  /** A free packet id for a PUBLISH, SUBSCRIBE or UNSUBSCRIBE [MQTT-2.2.1-3]; undefined while all 65,535 are taken. */
  takeId(): number | undefined {
    for (let tries = 0; tries < MAX_PACKET_ID; tries++) {
      this.#lastId = (this.#lastId % MAX_PACKET_ID) + 1;
      if (!this.outgoing.has(this.#lastId) && !this.#requests.has(this.#lastId)) return this.#lastId;
    }
    return undefined;
  }

  /** Reserve a packet id for a SUBSCRIBE or UNSUBSCRIBE until `answered`. */
  asked(id: number): void {
    this.#requests.add(id);
  }

  /** The answer came: the packet id is free. */
  answered(id: number): void {
    this.#requests.delete(id);
  }

  /** The connection is gone, and with it what waited for a SUBACK or UNSUBACK. */
  detach(): void {
    this.#requests.clear();
  }

  /** The server has no session: neither have we [MQTT-3.2.2-4]. */
  clear(): void {
    this.outgoing.clear();
    this.incoming.clear();
  }
}
