import type {
  KafkaClient,
  KafkaConfig,
  KafkaConsumer,
  KafkaProducer,
  KafkaRecord
} from '../../adapters/streams/kafka/index.ts';

type Sent = Parameters<KafkaProducer['send']>[0];
type Listeners = Record<string, Parameters<KafkaConsumer['on']>[1]>;

/** A client with one producer, and consumers that tests control. */
export class TestClient implements KafkaClient {
  readonly configs: KafkaConfig[] = [];
  readonly sent: Sent[] = [];
  readonly groups: unknown[] = [];
  readonly subscribed: unknown[] = [];
  readonly log: string[] = [];
  /** Called for each connection and each record. */
  fault: (what: 'connect' | 'send') => Error | undefined = () => undefined;
  eachMessage: (record: KafkaRecord) => Promise<void> = async () => {};
  listeners: Listeners = {};

  readonly make = (config: KafkaConfig): KafkaClient => {
    this.configs.push(config);
    return this;
  };

  producer(): KafkaProducer {
    return {
      connect: () => this.#attempt('connect'),
      disconnect: async () => void this.log.push('producer disconnected'),
      send: async (record) => {
        await this.#attempt('send');
        this.sent.push(record);
      }
    };
  }

  /** The last call of `eachMessage`: a consumer that disconnects waits for it. */
  #taking: Promise<void> = Promise.resolve();

  consumer(group: object): KafkaConsumer {
    this.groups.push(group);
    this.listeners = {};
    return {
      connect: () => this.#attempt('connect'),
      disconnect: async () => {
        await this.#taking.catch(() => undefined);
        this.log.push('consumer disconnected');
      },
      subscribe: async (topics) => void this.subscribed.push(topics),
      run: async ({ eachMessage }) => {
        this.eachMessage = eachMessage;
        this.listeners['consumer.group_join']({ payload: {} });
      },
      on: (event, listener) => {
        this.listeners[event] = listener;
      }
    };
  }

  /** Deliver a record. */
  record(value: string | null, more: Partial<KafkaRecord['message']> = {}, heartbeat = async () => {}): Promise<void> {
    const message = {
      value: value === null ? null : Buffer.from(value),
      timestamp: '1700000000000',
      offset: '7',
      ...more
    };
    this.#taking = this.eachMessage({ topic: 'readings', partition: 2, message, heartbeat });
    return this.#taking;
  }

  async #attempt(what: 'connect' | 'send'): Promise<void> {
    const error = this.fault(what);
    if (error !== undefined) throw error;
  }
}
