// The program of the tutorial "Write a library": pairing codes for devices, as a package would offer them, and its test.

// #region options
import type { Clock } from 'embermq';
import { InvalidInput } from 'embermq';
import type { AuthSource } from 'embermq/adapter';

/** Options of `pairing`. */
export interface PairingOptions {
  /** Time after which a code is no longer accepted, in milliseconds. Default: 10 minutes. */
  readonly lifetimeMs?: number;
}

/** Data of a client that was paired: `client.data` in hooks and events. */
export interface Paired {
  readonly pairedAt: number;
}
// #endregion

// #region library
/** Pairing codes: a device logs in once with a code, which is its password, and may then use the topics below its client id. */
export interface Pairing {
  /** Pass it to the broker: `createBroker({ auth: [codes.source] })`. */
  readonly source: AuthSource<Paired>;
  /** Make a code for a device. A new code replaces the one before. */
  offer(clientId: string): string;
}

/** @throws InvalidInput OPTION_INVALID if `lifetimeMs` is not a positive number */
export function pairing({ lifetimeMs = 600_000 }: PairingOptions = {}): Pairing {
  if (!(lifetimeMs > 0)) throw new InvalidInput('OPTION_INVALID', 'lifetimeMs', 'a positive number', lifetimeMs);
  const offers = new Map<string, { readonly code: string; readonly until: number }>();
  let clock: Clock | undefined;
  const now = () => {
    if (clock === undefined) throw new InvalidInput('OPTION_INVALID', 'auth', 'a broker that has started', undefined);
    return clock.now();
  };
  return {
    source: {
      name: 'pairing',
      open(context) {
        clock = context.clock; // the clock of the broker, which tests control
      },
      authenticate({ client: { clientId }, password }) {
        const offer = offers.get(clientId);
        if (offer === undefined) return undefined; // not ours: the next source is asked
        if (offer.until < now() || offer.code !== password?.toString()) return false;
        offers.delete(clientId);
        return { allow: true, clientData: { pairedAt: now() } };
      },
      authorize: ({ client, topic }) => topic.startsWith(`${client.clientId}/`) || undefined
    },
    offer(clientId) {
      const code = String(Math.floor(Math.random() * 1_000_000)).padStart(6, '0');
      offers.set(clientId, { code, until: now() + lifetimeMs });
      return code;
    }
  };
}

// #endregion

// #region test
import assert from 'node:assert/strict';
import { createTestBroker } from 'embermq/testing';

const codes = pairing({ lifetimeMs: 60_000 });
const kit = await createTestBroker({ auth: [codes.source], leaks: 'error' });
kit.broker.on('client.connected', ({ client }) => console.log(client.clientId, client.data));

const lamp = await kit.connect({ clientId: 'lamp', password: codes.offer('lamp') });
assert.deepEqual(await lamp.subscribe(['lamp/set', 'door/set']), [0, 0x87]);

const late = codes.offer('door');
await kit.clock.advance('61s');
await assert.rejects(kit.connect({ clientId: 'door', password: late }), { code: 'CONNECT_REFUSED' });
assert.throws(() => pairing({ lifetimeMs: 0 }), { code: 'OPTION_INVALID' });
await kit[Symbol.asyncDispose](); // with leaks: 'error', fails if the library has left a timer or a handler
console.log('the tests have passed');
// #endregion
// prints:
// lamp { pairedAt: 1767225600000 }
// the tests have passed
