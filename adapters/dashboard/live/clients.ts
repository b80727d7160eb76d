// Rates of the clients in view, from the counters that their connections have in any case: they are read once a second, and no message is observed.

import { Fault } from '../../rest/index.ts';
import type { LiveKind, OpenWatch, WatchContext } from './live-kind.ts';
import { textsIn, wrong } from './params.ts';
import { Rate } from './rate.ts';

/** Maximum number of clients of a watch. */
const MAX_CLIENTS = 100;
/** Maximum number of clients of all watches of the console: as many as 64 streams with one list each have. */
const MAX_ROWS = 6_400;
/** Maximum number of characters of a client id: events have all of them. */
const MAX_LENGTH = 1_024;

/** A client that is in view. */
class Row {
  readonly #context: WatchContext;
  readonly #clientId: string;
  readonly #received: Rate;
  readonly #sent: Rate;
  #shown: readonly number[] = [];

  constructor(context: WatchContext, clientId: string) {
    this.#context = context;
    this.#clientId = clientId;
    const nowMs = context.broker.clock.monotonic();
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
    const { sessions } = this.#context.broker;
    if (!sessions.has(this.#clientId)) return [0, 0];
    const { recvMsg, sendMsg } = sessions.get(this.#clientId).counters();
    return [recvMsg, sendMsg];
  }
}

class ClientsWatch implements OpenWatch<readonly string[]> {
  readonly #context: WatchContext;
  readonly #rows = new Map<string, Row>();
  readonly #stop: () => void;

  constructor(context: WatchContext) {
    this.#context = context;
    this.#stop = context.everySecond(() => this.#show());
  }

  /** Clients that stay in view keep their rates. @throws Fault tooMany */
  update(clientIds: readonly string[]): void {
    const wanted = new Set(clientIds);
    const { shared } = this.#context;
    const count = shared.clientRows - this.#rows.size + wanted.size;
    if (count > MAX_ROWS)
      throw new Fault(
        'tooMany',
        `the tabs of the console together show ${MAX_ROWS} clients live, and no more can be: close one of them`
      );
    shared.clientRows = count;
    for (const clientId of this.#rows.keys()) if (!wanted.has(clientId)) this.#rows.delete(clientId);
    for (const clientId of wanted)
      if (!this.#rows.has(clientId)) this.#rows.set(clientId, new Row(this.#context, clientId));
  }

  close(): void {
    this.#stop();
    this.update([]);
  }

  #show(): void {
    const { broker, emit } = this.#context;
    const nowMs = broker.clock.monotonic();
    const rows = [...this.#rows.values()].map((row) => row.change(nowMs)).filter((row) => row !== undefined);
    if (rows.length > 0) emit({ at: broker.clock.now(), rows });
  }
}

/** Messages per second of clients: those whose rates have changed, once a second. */
export const CLIENTS: LiveKind<readonly string[]> = {
  read(params) {
    const clientIds = textsIn(params, 'clientIds', MAX_CLIENTS);
    if (clientIds.some(({ length }) => length > MAX_LENGTH))
      throw wrong('clientIds', `a list of client ids of at most ${MAX_LENGTH} characters`);
    return clientIds;
  },
  open(context, clientIds) {
    const watch = new ClientsWatch(context);
    try {
      watch.update(clientIds);
    } catch (error) {
      watch.close();
      throw error;
    }
    return watch;
  }
};
