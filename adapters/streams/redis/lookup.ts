import type { Redis } from 'ioredis';
import type { FieldTable, LookupSetup, OpenLookup, SourceType } from '../../../lib/adapter.ts';
import { StreamFailure, type StreamValue, type StreamValueObject } from '../../../lib/index.ts';
import { rowsIn } from '../rows.ts';
import { loadRedis, RedisLink } from './link.ts';
import { ADDRESS_TEXT, CREDENTIALS, readRedisSettings } from './settings.ts';

/** Maximum number of list elements that one lookup reads. */
const MAX_ELEMENTS = 10_000;

const PROPERTIES: FieldTable = {
  addr: { type: 'string', default: '127.0.0.1:6379', about: ADDRESS_TEXT },
  datatype: {
    type: 'string',
    default: 'string',
    choices: ['string', 'list'],
    about: 'Type of the values: string, or list with a row in each element.'
  },
  ...CREDENTIALS
};

/**
 * The source `redis` for lookup tables: `CREATE TABLE t () WITH (TYPE="redis", KIND="lookup", DATASOURCE="0")`.
 * DATASOURCE is the number of the database.
 *
 * ON compares one column with a value, which is the key in Redis; the name of the column does not matter. The value of
 * the key is JSON of an object, or of an array of objects. Without a connection lookups fail; it is established again
 * after 1 to 30 seconds.
 */
export function redisLookup(): SourceType {
  return {
    name: 'redis',
    about: 'Values of keys of Redis, for lookup tables.',
    properties: PROPERTIES,
    for: ['lookup'],
    async openLookup(setup) {
      const what = `lookup table ${setup.stream}`;
      const settings = readRedisSettings(setup.properties, 'addr', setup.datasource || '0', what);
      return new Lookup(setup, what, new RedisLink(await loadRedis(), settings, { clock: setup.clock }));
    }
  };
}

class Lookup implements OpenLookup {
  readonly #what: string;
  readonly #link: RedisLink;
  readonly #read: (client: Redis, key: string) => Promise<readonly string[]>;

  constructor({ properties }: LookupSetup, what: string, link: RedisLink) {
    this.#what = what;
    this.#link = link;
    this.#read = properties.datatype === 'list' ? readList : readString;
  }

  async find(keys: readonly string[], values: readonly StreamValue[]): Promise<readonly StreamValueObject[]> {
    if (keys.length !== 1) {
      const text = `${this.#what}: Redis finds rows by one key, and ON compares ${keys.join(', ')}; put the others into WHERE`;
      throw new StreamFailure(text);
    }
    const key = this.#keyOf(values[0]);
    if (key === undefined) return [];
    const texts = await this.#read(await this.#link.ready(), key);
    return texts.flatMap((text) => this.#rowsOf(text, key));
  }

  close(): void {
    this.#link.close();
  }

  /** @returns undefined for null, which is never a key */
  #keyOf(value: StreamValue): string | undefined {
    if (value === null || value === undefined) return undefined;
    if (typeof value !== 'object') return String(value);
    throw new StreamFailure(`${this.#what}: a key must be a string, a number or a boolean`);
  }

  #rowsOf(text: string, key: string): readonly StreamValueObject[] {
    const rows = rowsIn(text);
    if (rows !== undefined) return rows as readonly StreamValueObject[];
    const shown = key.length > 100 ? `${key.slice(0, 97)}...` : key;
    throw new StreamFailure(`${this.#what}: the key "${shown}" has no JSON of an object or of an array of objects`);
  }
}

async function readString(client: Redis, key: string): Promise<readonly string[]> {
  const text = await client.get(key);
  return text === null ? [] : [text];
}

/** @throws StreamFailure */
async function readList(client: Redis, key: string): Promise<readonly string[]> {
  const texts = await client.lrange(key, 0, MAX_ELEMENTS);
  if (texts.length > MAX_ELEMENTS) throw new StreamFailure(`a list in Redis has more than ${MAX_ELEMENTS} elements`);
  return texts;
}
