import { setImmediate } from 'node:timers/promises';
import { Random } from '../fuzz/random.ts';
import { until } from '../support/until.ts';
import { Peer, Victim } from './victim.ts';

/** Messages that are sent without waiting for the acknowledgements of the first ones. */
const BURST = 20;
/** Maximum number of numbers that are published before the previous ones have arrived. */
const MAX_AHEAD = 1_000;
/** Number of rows of a window of the rules. */
const WINDOW = 7;

/** The result of a run. */
interface StreamsOutcome {
  readonly rows: number;
  readonly kills: number;
  /** Empty if every promise was kept. */
  readonly faults: readonly string[];
}

/** The numbers in the windows of a rule, as a client receives them. */
class Windows {
  readonly numbers: number[] = [];
  readonly #reader: Peer;
  readonly #topic: string;

  constructor(victim: Victim, topic: string) {
    this.#topic = topic;
    this.#reader = new Peer(victim, `reader-${topic}`, (payload) => this.numbers.push(...JSON.parse(payload).ns));
  }

  async begin(): Promise<void> {
    await (await this.#reader.ready()).subscribe(this.#topic, { qos: 2 });
  }

  /** True if it is connected, also after a kill. */
  get isConnected(): boolean {
    return this.#reader.client?.isConnected === true;
  }

  async ready(): Promise<void> {
    await this.#reader.ready();
  }

  end(): void {
    this.#reader.end();
  }

  /** @param published how many numbers, from 0 on, were acknowledged */
  faults(published: number, isExact: boolean): string[] {
    const found = new Set(this.numbers);
    const missing = Array.from({ length: published }, (_, number) => number).filter((number) => !found.has(number));
    const faults: string[] = [];
    if (missing.length > 0)
      faults.push(`${this.#topic}: ${missing.length} are missing: ${missing.slice(0, 10).join()} ...`);
    const doubled = this.numbers.filter((number) => number >= 0).length - [...found].filter((n) => n >= 0).length;
    if (isExact && doubled > 0) faults.push(`${this.#topic}: ${doubled} are doubled`);
    return faults;
  }
}

/**
 * A durable broker with stream rules, a client that publishes numbers with QoS 2, clients that receive the windows, and kills.
 * @param kills number of moments at which a broker is killed
 * @param isRemote the numbers are published at another broker, which is killed as well: first the one, then the other, then as the seed decides
 */
export async function runStreams(seed: number, kills: number, isRemote: boolean): Promise<StreamsOutcome> {
  const random = new Random(seed);
  const far = isRemote ? await new Victim('bridge-broker.ts').begin() : undefined;
  const settings = far === undefined ? {} : { server: `tcp://127.0.0.1:${far.port}` };
  const victim = await new Victim('streams-broker.ts', settings).begin();
  const windows = [1, 2].map((qos) => new Windows(victim, `windows/${qos}`));
  const writer = new Peer(far ?? victim, 'writer');
  let next = 0;
  let isWriting = true;
  const write = async () => {
    while (isWriting) {
      const client = await writer.ready();
      const burst: Promise<unknown>[] = [];
      // rejected messages are in the session of the client, and are sent again with a later connection
      for (let i = 0; i < BURST && client.isConnected; i++)
        burst.push(client.publish('numbers', JSON.stringify({ n: next++ }), { qos: 2 }).catch(() => undefined));
      await Promise.all(burst);
      // the queue of another broker must not grow while a broker with rules is down
      await until(() => !isWriting || windows.every(({ numbers }) => next - numbers.length < MAX_AHEAD));
      await setImmediate();
    }
  };
  let isReading = true;
  const read = async () => {
    while (isReading) {
      for (const each of windows) await each.ready();
      await until(() => !isReading || windows.some((each) => !each.isConnected));
    }
  };
  try {
    for (const each of windows) await each.begin();
    // until the first connection, the other server has no session and keeps nothing
    while (isRemote && windows.some(({ numbers }) => numbers.length === 0))
      await (await writer.ready()).publish('numbers', JSON.stringify({ n: -1_000_000 }), { qos: 2 });
    const work = [write(), read()];
    for (let at = 0; at < kills; at++) {
      const mark = next + 20 + random.below(300);
      await until(() => next >= mark);
      const choices = far === undefined ? [[victim]] : [[far], [victim], [far, victim]];
      const which = at < 2 ? choices[at % choices.length] : random.pick(choices);
      await Promise.all(which.map((each) => each.kill()));
      await Promise.all(which.map((each) => each.begin()));
    }
    isWriting = false;
    await work[0];
    // numbers below 0 complete the last windows
    for (let filler = 1; filler < 2 * WINDOW || windows.some(({ numbers }) => !numbers.includes(-WINDOW)); filler++) {
      const client = await writer.ready();
      await client.publish('numbers', JSON.stringify({ n: -filler }), { qos: 2 }).catch(() => undefined);
      if (filler > 100_000) break;
    }
    isReading = false;
    await work[1];
    return { rows: next, kills, faults: windows.flatMap((each, at) => each.faults(next, at === 1)) };
  } finally {
    isWriting = isReading = false;
    writer.end();
    for (const each of windows) each.end();
    await Promise.all([victim.end(), far?.end()]);
  }
}
