import { createHash, timingSafeEqual } from 'node:crypto';
import type { AuthSource } from 'embermq/adapter';
import { jwt } from 'embermq/auth/jwt';
import { SignJWT } from 'jose';
import * as topics from './topics.ts';

/** A device that may log in. Its `id` is its client id and its user name. */
export interface Device {
  readonly id: string;
  readonly greenhouse: string;
  readonly key: string;
}

const ISSUER = 'greenhouse';
const AUDIENCE = 'mqtt';

/**
 * Lets devices in with the tokens of `Login`. The token must be that of the client id, and its claim `acl` lists the
 * permitted topics.
 */
export function deviceTokens(secret: string): AuthSource {
  return jwt({
    secret,
    issuer: ISSUER,
    audience: AUDIENCE,
    claims: { sub: '%c' },
    usernameClaim: 'sub',
    requireExpiry: true
  });
}

/** Issues tokens to devices that know their key. */
export class Login {
  readonly #devices: ReadonlyMap<string, Device>;
  readonly #secret: Uint8Array;

  constructor(devices: readonly Device[], secret: string) {
    this.#devices = new Map(devices.map((device) => [device.id, device]));
    this.#secret = new TextEncoder().encode(secret);
  }

  /** Return a token for an hour; undefined if the device is unknown or the key is wrong. */
  async tokenFor(id: string, key: string): Promise<string | undefined> {
    const device = this.#devices.get(id);
    if (device === undefined || !isEqual(device.key, key)) return undefined;
    const { greenhouse } = device;
    const acl = {
      all: [topics.own(greenhouse, id)],
      sub: [topics.command(greenhouse), topics.alarm(greenhouse)]
    };
    return new SignJWT({ acl })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(id)
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('1h')
      .sign(this.#secret);
  }
}

/** Compares two secrets in a time that does not depend on where they differ. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
