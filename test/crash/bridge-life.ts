import { setImmediate } from 'node:timers/promises';
import type { QoS } from '../../lib/index.ts';
import { Random } from '../fuzz/random.ts';
import { until } from '../support/until.ts';
import { Peer, Victim } from './victim.ts';

/** The messages that are published at one broker and received at the other. */
interface Flow {
  readonly topic: string;
  readonly qos: QoS;
  readonly isOut: boolean;
}

const FLOWS: readonly Flow[] = [
  { topic: 'out/1', qos: 1, isOut: true },
  { topic: 'out/2', qos: 2, isOut: true },
  { topic: 'in/1', qos: 1, isOut: false },
  { topic: 'in/2', qos: 2, isOut: false }
];
const BROKER = 'bridge-broker.ts';
/** Messages of a flow that are sent without waiting for the acknowledgements of the first ones. */
const BURST = 20;
/** Messages of a flow that have been published and not received yet, above which no more are published. At a kill, up to so many are on their way. */
const MAX_ON_THEIR_WAY = 400;

/** The result of a run. */
interface BridgeOutcome {
  readonly messages: number;
  readonly kills: number;
  /** Empty if every promise was kept. */
  readonly faults: readonly string[];
}

/**
 * Two durable brokers with a persisted bridge, clients that publish at both, and kills of either process or both.
 * @param kills number of moments at which one or both are killed: first the one, then the other, then as the seed decides
 */
export async function runBridge(seed: number, kills: number): Promise<BridgeOutcome> {
  const random = new Random(seed);
  const far = await new Victim(BROKER).begin();
  const link = {
    url: `mqtt://127.0.0.1:${far.port}`,
    isPersisted: true,
    backOff: 20,
    maxBackOff: 100,
    maxQueue: 0,
    maxQueueBytes: 0,
    out: FLOWS.filter(({ isOut }) => isOut).map(({ topic, qos }) => ({ filter: topic, qos })),
    in: FLOWS.filter(({ isOut }) => !isOut).map(({ topic, qos }) => ({ filter: topic, qos }))
  };
  const near = await new Victim(BROKER, { link }).begin();
  const runs = FLOWS.map((flow) => new FlowRun(flow, near, far));
  try {
    await Promise.all(runs.map((run) => run.begin()));
    for (let at = 0; at < kills; at++) {
      const marks = runs.map(({ received }) => received.length + 20 + random.below(200));
      await until(() => runs.every(({ received }, each) => received.length >= marks[each]));
      const which = at < 2 ? [[far], [near]][at] : random.pick([[far], [near], [far, near]]);
      await Promise.all(which.map((victim) => victim.kill()));
      await Promise.all(which.map((victim) => victim.begin()));
    }
    await Promise.all(runs.map((run) => run.end()));
    const messages = runs.reduce((sum, { published }) => sum + published, 0);
    return { messages, kills, faults: runs.flatMap((run) => run.faults()) };
  } finally {
    for (const run of runs) run.abandon();
    await Promise.all([near.end(), far.end()]);
  }
}

/** Numbers that are published at one broker and received at the other one. */
class FlowRun {
  readonly received: string[] = [];
  published = 0;
  readonly #flow: Flow;
  readonly #sink: Peer;
  readonly #source: Peer;
  #isWriting = true;
  #isReading = true;
  #work: Promise<unknown>[] = [];

  constructor(flow: Flow, near: Victim, far: Victim) {
    const [from, to] = flow.isOut ? [near, far] : [far, near];
    this.#flow = flow;
    this.#sink = new Peer(to, `sink-${flow.topic}`, (payload) => this.received.push(payload));
    this.#source = new Peer(from, `source-${flow.topic}`);
  }

  async begin(): Promise<void> {
    const { topic, qos } = this.#flow;
    await (await this.#sink.ready()).subscribe(topic, { qos });
    this.#work = [this.#read(), this.#write()];
  }

  /** Resolves when all published messages have arrived. */
  async end(): Promise<void> {
    this.#isWriting = false;
    const [reading, writing] = this.#work;
    await writing;
    await until(() => this.received.includes('end'));
    this.#isReading = false;
    await reading;
  }

  abandon(): void {
    this.#isWriting = false;
    this.#isReading = false;
    this.#sink.end();
    this.#source.end();
  }

  faults(): string[] {
    const { topic, qos } = this.#flow;
    const numbers = this.received.filter((payload) => payload !== 'end').map(Number);
    const first = [...new Set(numbers)];
    const missing = Array.from({ length: this.published }, (_, number) => number).filter((n) => !first.includes(n));
    const faults: string[] = [];
    if (missing.length > 0) faults.push(`${topic}: ${missing.length} are missing: ${missing.slice(0, 10).join()} ...`);
    if (qos === 2 && first.length < numbers.length)
      faults.push(`${topic}: ${numbers.length - first.length} are doubled`);
    const at = first.findIndex((number, index) => index > 0 && number < first[index - 1]);
    if (at > 0) faults.push(`${topic}: ${first[at]} has arrived after ${first[at - 1]}`);
    return faults;
  }

  async #read(): Promise<void> {
    while (this.#isReading) {
      const { client } = this.#sink;
      await until(() => client?.isConnected !== true || !this.#isReading);
      if (this.#isReading) await this.#sink.ready();
    }
  }

  async #write(): Promise<void> {
    const { topic, qos } = this.#flow;
    while (this.#isWriting) {
      const client = await this.#source.ready();
      const burst: Promise<unknown>[] = [];
      for (let i = 0; i < BURST && client.isConnected; i++)
        burst.push(client.publish(topic, `${this.published++}`, { qos }).catch(() => undefined));
      await Promise.all(burst);
      await setImmediate();
      await until(() => this.published - this.received.length < MAX_ON_THEIR_WAY || !this.#isWriting);
    }
    // rejected messages are in the session of the client, and were sent again with a later connection
    await (await this.#source.ready()).publish(topic, 'end', { qos }).catch(() => undefined);
    await this.#source.ready();
  }
}
