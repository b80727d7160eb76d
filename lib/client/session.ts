import type { PublishPacket } from '../packets/types.ts';

/** A message that was sent and is not completely acknowledged. */
export interface Outgoing {
  /** The PUBLISH, with its packet id. */
  readonly packet: PublishPacket;
  /** True if the PUBREC has arrived; the PUBREL is then resent instead of the message. */
  isReleased: boolean;
}

const MAX_PACKET_ID = 65_535;

/**
 * The session state that a client keeps between connections [MQTT-4.1.0-1].
 *
 * Pass it as the option `session` of the next connect.
 */
export class ClientSession {
  #outgoing: Map<number, Outgoing> | undefined = undefined;
  #incoming: Map<number, boolean> | undefined = undefined;
  /** Undefined until the first SUBSCRIBE or UNSUBSCRIBE of a connection. */
  #requests: Set<number> | undefined = undefined;
  #subscribed: Set<string> | undefined = undefined;
  #hasRequested = false;
  #lastId = 0;

  /** By packet id, in the order of sending, which is also the order of resending [MQTT-4.6.0-1]. */
  get outgoing(): Map<number, Outgoing> {
    this.#outgoing ??= new Map();
    return this.#outgoing;
  }

  /** The packet ids of delivered QoS 2 messages whose PUBREL has not arrived. The value is true if the PUBREC has been sent. */
  get incoming(): Map<number, boolean> {
    this.#incoming ??= new Map();
    return this.#incoming;
  }

  /** The filters that the server has granted, for `console.log`. */
  get subscribed(): Set<string> {
    this.#subscribed ??= new Set();
    return this.#subscribed;
  }

  /** True if the client has made requests, whose responses the server may still have. */
  get hasRequested(): boolean {
    return this.#hasRequested;
  }

  /** Note that the client makes requests. */
  requesting(): void {
    this.#hasRequested = true;
  }

  /** Find a free packet id for a PUBLISH, SUBSCRIBE or UNSUBSCRIBE [MQTT-2.2.1-3]. @returns undefined if all 65,535 are in use */
  takeId(): number | undefined {
    for (let tries = 0; tries < MAX_PACKET_ID; tries++) {
      this.#lastId = (this.#lastId % MAX_PACKET_ID) + 1;
      if (!this.#outgoing?.has(this.#lastId) && !this.#requests?.has(this.#lastId)) return this.#lastId;
    }
    return undefined;
  }

  /** Reserve a packet id for a SUBSCRIBE or UNSUBSCRIBE until `answered`. */
  asked(id: number): void {
    this.#requests ??= new Set();
    this.#requests.add(id);
  }

  /** Release the packet id of a SUBSCRIBE or UNSUBSCRIBE, because the response has arrived. */
  answered(id: number): void {
    this.#requests?.delete(id);
  }

  /** Release all packet ids of SUBSCRIBE and UNSUBSCRIBE, because the connection has closed. */
  detach(): void {
    this.#requests = undefined;
  }

  /** Discard the state, because the server has no session [MQTT-3.2.2-4]. */
  clear(): void {
    this.#outgoing?.clear();
    this.#incoming?.clear();
    this.#subscribed?.clear();
    this.#hasRequested = false;
  }
}
