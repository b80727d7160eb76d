import {
  type FieldTable,
  type OpenSink,
  type SinkItem,
  type SinkSetup,
  type SinkType,
  streamJson
} from '../../../lib/adapter.ts';
import { InvalidInput, SendError, StreamFailure } from '../../../lib/index.ts';
import { type RowKind, rowKindOf, rowsIn, type SinkRow } from '../rows.ts';
import { loadRedis, RedisLink } from './link.ts';
import { ADDRESS_TEXT, CREDENTIALS, readRedisSettings } from './settings.ts';

const PROPERTIES: FieldTable = {
  addr: { type: 'string', required: true, about: ADDRESS_TEXT },
  db: { type: 'number', default: 0, min: 0, about: 'Number of the database.' },
  key: { type: 'string', isTemplate: true, about: 'Key of all rows; for the keyType single.' },
  field: { type: 'string', about: 'Column whose value is the key of its row; takes precedence over key.' },
  keyType: {
    type: 'string',
    default: 'single',
    choices: ['single', 'multiple'],
    about: 'single: a row is JSON at one key. multiple: each column is a key with its value.'
  },
  dataType: {
    type: 'string',
    default: 'string',
    choices: ['string', 'list'],
    about: 'string: the value of a key is replaced. list: the value is prepended.'
  },
  expiration: {
    type: 'number',
    default: -1,
    min: -1,
    max: 1e9,
    about: 'Seconds after which a key of the dataType string expires. -1 and 0: never.'
  },
  rowkindField: {
    type: 'string',
    about: 'Column with the operation on a row: insert, update, upsert or delete. Default: all rows are inserted.'
  },
  ...CREDENTIALS
};

interface RedisProperties {
  readonly field?: string;
  readonly key?: string;
  readonly keyType: 'single' | 'multiple';
  readonly dataType: 'string' | 'list';
  readonly expiration: number;
  readonly rowkindField?: string;
}

type Command = [name: string, ...args: (string | number | Buffer)[]];

/**
 * The sink `redis`: rows as values of keys.
 *
 * The rows of an output are written individually, in order; all commands of an output are sent together. With the
 * dataType list, `delete` takes the first element. Without a connection outputs fail, or are queued in the cache; it is
 * established again after 1 to 30 seconds.
 */
export function redisSink(): SinkType {
  return {
    name: 'redis',
    about: 'Writes rows to keys of Redis.',
    properties: PROPERTIES,
    async open(setup) {
      const { properties } = setup;
      const { keyType, key, field } = properties as unknown as RedisProperties;
      if (keyType === 'single' && !key && !field) {
        const text = 'redis sink: property key or field is missing; it is needed for the keyType single';
        throw new InvalidInput('PROPERTY_INVALID', 'key', 'a key, or field as the name of a column', key, text);
      }
      const settings = readRedisSettings(properties, 'addr', properties.db, 'redis sink');
      return new RedisSink(setup, new RedisLink(await loadRedis(), settings, setup));
    }
  };
}

class RedisSink implements OpenSink {
  readonly #properties: RedisProperties;
  readonly #link: RedisLink;

  constructor({ properties }: SinkSetup, link: RedisLink) {
    this.#properties = properties as unknown as RedisProperties;
    this.#link = link;
  }

  async send(item: SinkItem): Promise<void> {
    const commands = this.#commandsOf(item);
    if (commands.length === 0) return;
    const client = await this.#link.ready();
    const results = (await client.pipeline(commands).exec()) ?? [];
    for (const [error] of results) {
      // the key has a value of another type, which is kept
      const isFinal = error?.message.startsWith('WRONGTYPE') === true;
      if (error !== null) throw new SendError(`redis sink: ${error.message}`, { isFinal });
    }
  }

  close(): void {
    this.#link.close();
  }

  /** @throws StreamFailure */
  #commandsOf(item: SinkItem): Command[] {
    const { field, keyType, rowkindField } = this.#properties;
    const rows = item.value instanceof Uint8Array ? undefined : rowsIn(item.value);
    if (rows !== undefined && keyType === 'multiple') return rows.flatMap((row) => this.#commandsOfColumns(row));
    if (rows === undefined) {
      if (field || keyType === 'multiple')
        throw new StreamFailure('redis sink: the output must be a row or a list of rows');
      return [this.#command('insert', keyOf(item.property('key'), 'key'), item.bytes)];
    }
    return rows.map((row) => {
      const key = field ? keyOf(row[field], field) : keyOf(item.property('key'), 'key');
      return this.#command(rowKindOf(row, rowkindField, 'redis sink'), key, streamJson(row));
    });
  }

  #commandsOfColumns(row: SinkRow): Command[] {
    const { rowkindField } = this.#properties;
    const kind = rowKindOf(row, rowkindField, 'redis sink');
    const columns = Object.entries(row).filter(([name, value]) => name !== rowkindField && value !== undefined);
    return columns.map(([name, value]) => this.#command(kind, name, contentOf(value)));
  }

  #command(kind: RowKind, key: string, value: string | Buffer): Command {
    const { dataType, expiration } = this.#properties;
    if (dataType === 'list') return kind === 'delete' ? ['lpop', key] : ['lpush', key, value];
    if (kind === 'delete') return ['del', key];
    return expiration > 0 ? ['set', key, value, 'PX', Math.ceil(1000 * expiration)] : ['set', key, value];
  }
}

/** @throws StreamFailure */
function keyOf(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  throw new StreamFailure(`redis sink: ${name} has no value that is a key: a string, a number or a boolean`);
}

/** The value of a column: strings and bytes unchanged, others as JSON. */
function contentOf(value: unknown): string | Buffer {
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? Buffer.from(value) : streamJson(value);
}
