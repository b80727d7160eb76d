import type { FieldTable } from '../../../lib/adapter.ts';
import { InvalidInput, type StreamProperties } from '../../../lib/index.ts';

/** User name and password at the server. */
export const CREDENTIALS: FieldTable = {
  username: { type: 'string', about: 'User name at the server.' },
  password: { type: 'string', about: 'Password at the server.', isSecret: true }
};

export const ADDRESS_TEXT = 'Host and port of the server: 127.0.0.1:6379, or rediss://host:6380 for TLS.';

/** The address of a database. */
export interface RedisSettings {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  readonly db: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/**
 * @param name the name of the property with the address
 * @param what for messages: `redis sink`
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readRedisSettings(
  properties: StreamProperties,
  name: 'addr' | 'address',
  db: unknown,
  what: string
): RedisSettings {
  const { username, password } = properties as Readonly<Record<string, string | undefined>>;
  const address = String(properties[name]);
  const [, scheme = 'redis', place = ''] = /^(?:(rediss?):\/\/)?([^/@?#]+)\/?$/i.exec(address) ?? [];
  const text = `http://${place}`;
  if (place === '' || !URL.canParse(text)) {
    const expected = 'host and port without credentials, such as "127.0.0.1:6379"';
    throw new InvalidInput(
      'PROPERTY_INVALID',
      name,
      expected,
      undefined,
      `${what}: property ${name} must be ${expected}`
    );
  }
  if (!/^\d{1,9}$/.test(String(db))) {
    const expected = 'the number of a database, from 0';
    throw new InvalidInput(
      'PROPERTY_INVALID',
      'db',
      expected,
      db,
      `${what}: the database must be ${expected}, got "${db}"`
    );
  }
  const { hostname } = new URL(text);
  const port = /:(\d+)$/.exec(place)?.[1];
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === undefined ? 6379 : Number(port),
    isSecure: scheme.toLowerCase() === 'rediss',
    db: Number(db),
    username: username || undefined,
    password: password || undefined
  };
}
