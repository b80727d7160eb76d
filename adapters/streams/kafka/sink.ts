import type { FieldTable, OpenSink, SinkItem, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput, SendError } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import { clientFor, KAFKA_PROPERTIES, type KafkaOptions, type KafkaProducer, REQUEST_MS } from './client.ts';

/** Numbers in the protocol. */
const COMPRESSIONS: Readonly<Record<string, number>> = { '': 0, none: 0, gzip: 1 };
/** Types of protocol errors with which a broker rejects a record permanently. */
const FINAL = [
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_TOPIC_EXCEPTION',
  'INVALID_RECORD',
  'INVALID_REQUIRED_ACKS'
];

const PROPERTIES: FieldTable = {
  ...KAFKA_PROPERTIES,
  topic: { type: 'string', required: true, isTemplate: true, about: 'Topic.' },
  key: { type: 'string', isTemplate: true, about: 'Key of the record. Default: none.' },
  headers: {
    type: 'any',
    isTemplate: true,
    about: 'Headers of the record: an object, or a template that makes JSON of one.'
  },
  requiredACKs: {
    type: 'number',
    default: -1,
    choices: [-1, 0, 1],
    about: 'Acknowledgements to wait for: -1 of all replicas in sync, 1 of the leader, 0 none.'
  },
  compression: {
    type: 'string',
    default: 'none',
    choices: Object.keys(COMPRESSIONS),
    about: 'Compression of the records by Kafka.'
  }
};

/**
 * The sink `kafka`: each output becomes a record of a topic.
 *
 * An output counts as sent when the brokers have acknowledged it (`requiredACKs`). With a cache, permanently refused
 * records, such as those that are too large, are not sent again. Without a connection outputs fail, or are queued in
 * the cache; the client reconnects on its own.
 */
export function kafkaSink(options: KafkaOptions = {}): SinkType {
  return {
    name: 'kafka',
    about: 'Sends outputs as records to Kafka.',
    properties: PROPERTIES,
    async open(setup) {
      const client = await clientFor(setup, options, 'kafka sink');
      return new RecordSink(setup, client.producer({ allowAutoTopicCreation: true }));
    }
  };
}

class RecordSink implements OpenSink {
  readonly #setup: SinkSetup;
  readonly #producer: KafkaProducer;
  readonly #backOff: BackOff;
  #isConnected = false;
  #isClosed = false;
  #reason = 'it is being established';

  constructor(setup: SinkSetup, producer: KafkaProducer) {
    this.#setup = setup;
    this.#producer = producer;
    this.#backOff = new BackOff(setup.clock);
    this.#connect();
  }

  async send(item: SinkItem): Promise<void> {
    if (!this.#isConnected) throw new BrokerError('RESOURCE_DOWN', `kafka sink: no connection: ${this.#reason}`);
    const { requiredACKs, compression } = this.#setup.properties as { requiredACKs: number; compression: string };
    const key = item.property('key');
    try {
      await this.#producer.send({
        topic: String(item.property('topic')),
        acks: requiredACKs,
        timeout: REQUEST_MS,
        compression: COMPRESSIONS[compression],
        messages: [{ key: key === undefined ? null : String(key), value: item.bytes, headers: headersOf(item) }]
      });
    } catch (error) {
      const { type = '', message } = error as Error & { type?: string };
      if (FINAL.includes(type)) throw new SendError(`kafka sink: ${message}`, { isFinal: true, cause: error });
      this.#setup.disconnected(error);
      throw error;
    }
    this.#setup.connected();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#backOff.cancel();
    await this.#producer.disconnect();
  }

  #connect(): void {
    this.#producer.connect().then(
      () => {
        if (this.#isClosed) return;
        this.#isConnected = true; // the client now reconnects when it sends
        this.#setup.connected();
      },
      (error: Error) => {
        if (this.#isClosed) return;
        this.#reason = error.message;
        this.#setup.disconnected(error);
        this.#backOff.later(() => this.#connect());
      }
    );
  }
}

/** @throws InvalidInput PROPERTY_INVALID */
function headersOf(item: SinkItem): Record<string, string> {
  const given = item.property('headers') ?? {};
  let headers: unknown = given;
  try {
    if (typeof given === 'string') headers = given === '' ? {} : JSON.parse(given);
  } catch {
    headers = undefined;
  }
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    const text = 'kafka sink: property headers must be an object, or a template that makes JSON of one';
    throw new InvalidInput('PROPERTY_INVALID', 'headers', 'an object', given, text);
  }
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
