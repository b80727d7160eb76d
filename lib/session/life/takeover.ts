import type { Session } from '../session.ts';
import { originOf } from './farewell.ts';
import type { WillState } from './will.ts';

/**
 * The takeover of the connection of a client that has returned, and of the result of its CONNECT, by a stored session.
 *
 * It exists from the decision to resume the session until the provisional session, which had the connection, has ended.
 */
export class Takeover {
  readonly #stored: Session;
  /** The provisional session; undefined once its connection is attached to the stored one. */
  #incoming: Session | undefined;
  readonly #whenDone: (() => void)[] = [];

  constructor(stored: Session, incoming: Session) {
    this.#stored = stored;
    this.#incoming = incoming;
  }

  /** True if the connection is not attached yet. */
  get isPending(): boolean {
    return this.#incoming !== undefined;
  }

  /** Start the takeover. @returns the will of the previous connection, to publish after the CONNACK */
  begin(): WillState | undefined {
    const { lifecycle, state } = this.#stored;
    const { client } = this.#incoming as Session;
    if (state === 'connected') return lifecycle.supersede(`another connection, ${originOf(client)}`);
    lifecycle.send('resumed');
    return undefined;
  }

  /** Attach the connection, unless it is attached. */
  attach(): void {
    const stored = this.#stored;
    const incoming = this.#incoming;
    if (incoming === undefined) return;
    this.#incoming = undefined;
    stored.attach(incoming.connection);
    incoming.attach(undefined);
    stored.client.returned(incoming.client);
    stored.lifecycle.agreeOnWill(incoming.lifecycle.will); // a reconnect deletes a delayed will [MQTT-3.1.3-9]
  }

  /** Run this when the takeover has ended. */
  afterwards(run: () => void): void {
    this.#whenDone.push(run);
  }

  end(): void {
    this.#stored.lifecycle.takenOverBy(undefined);
    for (const run of this.#whenDone) run();
  }
}
