// Rates of the clients in view, from the counters that their connections have in any case: they are read once a second, and no message is observed.

import type { Broker } from '../../../lib/index.ts';
import { type LiveRow, liveRows } from './live-rows.ts';
import { textsIn, wrong } from './params.ts';
import { Rate } from './rate.ts';

/** Maximum number of clients of a watch. */
const MAX_CLIENTS = 100;
/** Maximum number of clients of all watches of the console: as many as 64 streams with one list each have. */
const MAX_ROWS = 6_400;
/** Maximum number of characters of a client id: events have all of them. */
const MAX_LENGTH = 1_024;

/** A client that is in view. */
class Row implements LiveRow {
  readonly #broker: Broker;
  readonly #clientId: string;
  readonly #received: Rate;
  readonly #sent: Rate;
  #shown: readonly number[] = [];

  constructor(broker: Broker, clientId: string) {
    this.#broker = broker;
    this.#clientId = clientId;
    const nowMs = broker.clock.monotonic();
    const [received, sent] = this.#counts();
    this.#received = new Rate(nowMs, received);
    this.#sent = new Rate(nowMs, sent);
  }

  /** The rates; undefined if they are those of a second before. */
  change(nowMs: number): object | undefined {
    const [received, sent] = this.#counts();
    const rates = [this.#received.next(nowMs, received), this.#sent.next(nowMs, sent)];
    if (rates.every((rate, index) => rate === this.#shown[index])) return undefined;
    this.#shown = rates;
    return { clientId: this.#clientId, received: rates[0], sent: rates[1] };
  }

  #counts(): readonly [received: number, sent: number] {
    const { sessions } = this.#broker;
    if (!sessions.has(this.#clientId)) return [0, 0];
    const { recvMsg, sendMsg } = sessions.get(this.#clientId).counters();
    return [recvMsg, sendMsg];
  }
}

/** Messages per second of clients: those whose rates have changed, once a second. */
export const CLIENTS = liveRows({
  of: 'clients',
  maxRows: MAX_ROWS,
  read(params) {
    const clientIds = textsIn(params, 'clientIds', MAX_CLIENTS);
    if (clientIds.some(({ length }) => length > MAX_LENGTH))
      throw wrong('clientIds', `a list of client ids of at most ${MAX_LENGTH} characters`);
    return clientIds;
  },
  open: ({ broker }) => ({ row: (clientId) => new Row(broker, clientId) })
});
