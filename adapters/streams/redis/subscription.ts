import { promisify } from 'node:util';
import { gunzip, type InputType, inflate, inflateRaw, type ZlibOptions } from 'node:zlib';
import type { FieldTable, OpenSource, SourceSetup, SourceType } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { loadRedis, RedisLink } from './link.ts';
import { ADDRESS_TEXT, CREDENTIALS, readRedisSettings } from './settings.ts';

/** Maximum size of a decompressed message in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;
const DECOMPRESSIONS: Readonly<Record<string, (bytes: InputType, options: ZlibOptions) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  zlib: promisify(inflate),
  flate: promisify(inflateRaw)
};

const PROPERTIES: FieldTable = {
  address: { type: 'string', default: '127.0.0.1:6379', about: ADDRESS_TEXT },
  db: {
    type: 'number',
    default: 0,
    min: 0,
    about: 'Number of the database; channels are the same in all.'
  },
  channels: { type: 'array', about: 'Names of the channels. Default: the channel in DATASOURCE.' },
  decompression: {
    type: 'string',
    choices: ['', ...Object.keys(DECOMPRESSIONS)],
    about: 'Compression of messages. Default: none.'
  },
  ...CREDENTIALS
};

/**
 * The source `redisSub`: messages of channels of Redis, which are decoded by the FORMAT of the stream; `meta(channel)`
 * is the name of the channel.
 *
 * A lost or failed connection is established again after 1 to 30 seconds. Messages published meanwhile are lost,
 * because Redis does not store them.
 */
export function redisSubSource(): SourceType {
  return {
    name: 'redisSub',
    about: 'Messages of channels of Redis.',
    properties: PROPERTIES,
    for: ['stream', 'table'],
    async open(setup) {
      const what = `source redisSub of ${setup.stream}`;
      const settings = readRedisSettings(setup.properties, 'address', setup.properties.db, what);
      const channels = readChannels(setup, what);
      const source = new Messages(setup);
      const link = new RedisLink(await loadRedis(), settings, {
        clock: setup.clock,
        connected: () => setup.connected(),
        disconnected: (reason) => setup.disconnected(reason),
        prepare(client) {
          client.on('messageBuffer', (channel: Buffer, bytes: Buffer) => source.take(String(channel), bytes));
          return client.subscribe(...channels);
        }
      });
      source.close = () => link.close();
      return source;
    }
  };
}

/** @throws InvalidInput PROPERTY_INVALID */
function readChannels({ properties, datasource }: SourceSetup, what: string): readonly string[] {
  const { channels = datasource === '' ? [] : [datasource] } = properties as { readonly channels?: readonly unknown[] };
  if (channels.length > 0 && channels.every((each) => typeof each === 'string' && each !== ''))
    return channels as string[];
  const expected = 'a list of names of channels; or a name in DATASOURCE';
  throw new InvalidInput(
    'PROPERTY_INVALID',
    'channels',
    expected,
    channels,
    `${what}: property channels must be ${expected}`
  );
}

class Messages implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #decompress: (typeof DECOMPRESSIONS)[string] | undefined;
  /** Compressed messages are decompressed sequentially to keep their order. */
  #last: Promise<void> = Promise.resolve();
  close: () => void = () => undefined;

  constructor(setup: SourceSetup) {
    this.#setup = setup;
    this.#decompress = DECOMPRESSIONS[String(setup.properties.decompression)];
  }

  take(channel: string, bytes: Buffer): void {
    const decompress = this.#decompress;
    if (decompress === undefined) {
      this.#setup.bytes(bytes, { channel });
      return;
    }
    this.#last = this.#last
      .then(async () => this.#setup.bytes(await decompress(bytes, { maxOutputLength: MAX_BYTES }), { channel }))
      .catch((error) => this.#setup.failed(error));
  }
}
