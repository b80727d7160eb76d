import type { FieldTable, OpenSource, SourceSetup, SourceType } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import {
  clientFor,
  KAFKA_PROPERTIES,
  type KafkaClient,
  type KafkaConsumer,
  type KafkaOptions,
  type KafkaRecord
} from './client.ts';

/** Interval at which a consumer whose rule has no room sends heartbeats to the group, in milliseconds. */
const HEARTBEAT_MS = 3_000;

const PROPERTIES: FieldTable = {
  ...KAFKA_PROPERTIES,
  topic: { type: 'string', about: 'Topic. DATASOURCE overrides it.' },
  groupId: {
    type: 'string',
    about: 'Consumer group, whose position is stored by the brokers. Default: embermq- and the name of the stream.'
  },
  groupID: { type: 'string', about: 'The same as groupId.' },
  offset: {
    type: 'string',
    default: 'latest',
    choices: ['latest', 'earliest'],
    about: 'Start position of a group without a position.'
  },
  maxBytes: {
    type: 'number',
    default: 1_048_576,
    min: 1,
    max: 104_857_600,
    about: 'Maximum number of bytes that one request fetches.'
  }
};

/**
 * The source `kafka`: records of a topic, which DATASOURCE names. Their values are decoded by the FORMAT of the stream;
 * records without a value are left out. Metadata: `topic`, `partition`, `offset`, `timestamp`, `key` and `headers`.
 *
 * The client commits the position of the group once rules have the rows. While a rule has no room, nothing is fetched.
 */
export function kafkaSource(options: KafkaOptions = {}): SourceType {
  return {
    name: 'kafka',
    about: 'Records of a topic of Kafka.',
    properties: PROPERTIES,
    async open(setup) {
      const what = `source kafka of ${setup.stream}`;
      const topic = setup.datasource || String(setup.properties.topic ?? '');
      if (!/^[\w.-]{1,249}$/.test(topic)) {
        const expected = 'the name of a topic';
        const text = `${what}: DATASOURCE must be ${expected} of letters, digits, ".", "_" and "-"`;
        throw new InvalidInput('STREAM_INVALID', 'DATASOURCE', expected, topic, text);
      }
      return new Records(setup, await clientFor(setup, options, what), topic);
    }
  };
}

class Records implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #client: KafkaClient;
  readonly #topic: string;
  readonly #backOff: BackOff;
  #consumer: KafkaConsumer | undefined;
  #isClosed = false;
  /** True once the rules that were being started when the first record arrived are running. */
  #isReady = false;
  /** Resumes the wait for room. */
  #wake = () => {};
  #waits = false;

  constructor(setup: SourceSetup, client: KafkaClient, topic: string) {
    this.#setup = setup;
    this.#client = client;
    this.#topic = topic;
    this.#backOff = new BackOff(setup.clock);
    this.#try();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#backOff.cancel();
    this.#wake();
    await this.#consumer?.disconnect();
  }

  #try(): void {
    const { properties, stream } = this.#setup;
    const { groupId, groupID, maxBytes } = properties as { groupId?: string; groupID?: string; maxBytes?: number };
    const group = groupId || groupID || `embermq-${stream}`;
    const consumer = this.#client.consumer({ groupId: group, ...(maxBytes === undefined ? {} : { maxBytes }) });
    this.#consumer = consumer;
    consumer.on('consumer.group_join', () => {
      if (this.#isClosed || this.#consumer !== consumer) return;
      this.#backOff.reset();
      this.#setup.connected();
    });
    consumer.on('consumer.crash', ({ payload: { error, restart } }) => {
      if (restart === true) this.#report(consumer, error);
      else this.#lost(consumer, error);
    });
    this.#run(consumer).catch((error: unknown) => this.#lost(consumer, error));
  }

  async #run(consumer: KafkaConsumer): Promise<void> {
    await consumer.connect();
    await consumer.subscribe({ topics: [this.#topic], fromBeginning: this.#setup.properties.offset === 'earliest' });
    await consumer.run({ eachMessage: (record) => this.#take(record) });
  }

  #report(consumer: KafkaConsumer, error: unknown): void {
    if (!this.#isClosed && this.#consumer === consumer) this.#setup.disconnected(error);
  }

  /** Replace a consumer that has ended by another one after a delay. */
  #lost(consumer: KafkaConsumer, error: unknown): void {
    if (this.#isClosed || this.#consumer !== consumer) return;
    this.#setup.disconnected(error);
    this.#consumer = undefined;
    consumer.disconnect().catch(() => undefined); // it has already failed
    this.#backOff.later(() => this.#try());
  }

  async #take({ topic, partition, message, heartbeat }: KafkaRecord): Promise<void> {
    if (!this.#isReady) {
      await this.#setup.ready();
      this.#isReady = true;
    }
    while (this.#setup.isFull && !this.#isClosed) {
      await this.#roomOrHeartbeat();
      await heartbeat();
    }
    const { value, key, offset, timestamp, headers } = message;
    if (this.#isClosed) throw new Error('the source is closed'); // so that the record is not committed
    if (value === null) return;
    const metadata = {
      topic,
      partition,
      offset: Number(offset),
      timestamp: Number(timestamp),
      ...(key === null || key === undefined ? {} : { key: key.toString() }),
      ...(headers === undefined ? {} : { headers: textsOf(headers) })
    };
    const give = () => this.#setup.bytes(value, metadata);
    // the position is committed when this has resolved
    if (this.#setup.isKept) await this.#setup.kept(give);
    else give();
  }

  #roomOrHeartbeat(): Promise<void> {
    const { clock } = this.#setup;
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(), HEARTBEAT_MS);
      this.#wake = () => {
        clock.clearTimeout(timer);
        resolve();
      };
      if (this.#waits) return;
      this.#waits = true;
      this.#setup.whenRoom(() => {
        this.#waits = false;
        this.#wake();
      });
    });
  }
}

function textsOf(headers: NonNullable<KafkaRecord['message']['headers']>): Record<string, string> {
  const texts = Object.entries(headers).map(([name, value]) => [name, String(Array.isArray(value) ? value[0] : value)]);
  return Object.fromEntries(texts);
}
