import type { AuthSource } from '../../lib/adapter.ts';
import type { TransportInfo } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** The connection of a test client. */
interface Attempt {
  readonly username?: string | undefined;
  readonly password?: string | Buffer;
  readonly clientId?: string;
  readonly transportInfo?: TransportInfo;
}

/** A broker with a source, and what its tests need. */
export interface SourceBroker extends AsyncDisposable {
  readonly kit: TestBroker;
  /** Error events: message, and what was done. */
  readonly errors: string[];
  /** Connect. @returns 0, or the reason code of the refusal */
  attempt(options?: Attempt): Promise<number>;
  /** Connect, and try to publish and subscribe. @returns the answers: 0 or the reason code of the refusal */
  rights(who: Attempt, topics: { readonly publish?: string[]; readonly subscribe?: string[] }): Promise<number[]>;
}

/** Start a broker with a source. */
export async function sourceBroker(
  source: AuthSource,
  more: Parameters<typeof createTestBroker>[0] = {}
): Promise<SourceBroker> {
  const kit = await createTestBroker({ auth: [source], ...more });
  const errors: string[] = [];
  kit.broker.on('error', ({ error, during }) => errors.push(`${error.message} / ${during}`));
  const connect = (given: Attempt) =>
    kit.broker.connect({ clientId: 'c', username: 'ann', ...given, protocolVersion: 5 } as never);
  return {
    kit,
    errors,
    attempt: async (given = {}) => {
      try {
        await using _ = await connect(given);
        return 0;
      } catch (error) {
        return reasonOf(error);
      }
    },
    rights: async (who, { publish = [], subscribe = [] }) => {
      await using client = await connect(who);
      const answers: number[] = [];
      for (const topic of publish)
        answers.push(
          await client.publish(topic, 'x', { qos: 1 }).then(
            () => 0,
            (error) => reasonOf(error)
          )
        );
      if (subscribe.length > 0) answers.push(...(await client.subscribe(subscribe)));
      return answers;
    },
    [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]()
  };
}

/** @throws the error if it is not a refusal */
function reasonOf(error: unknown): number {
  const { reasonCode } = error as { reasonCode?: number };
  if (typeof reasonCode !== 'number') throw error;
  return reasonCode;
}

/** Names and passwords that try to leave their place in a query. */
export const HOSTILE = [
  "'; DROP TABLE mqtt_user; --",
  "' OR '1'='1",
  "ann' -- ",
  "\\' OR 1=1 -- ",
  '" OR ""="',
  '%u',
  '$1',
  '?',
  '$all',
  '$ne',
  '{"$ne": ""}',
  '*',
  ')(',
  'ann*',
  'FLUSHALL',
  '../ann',
  '__proto__',
  'constructor',
  'ann ',
  ' ann',
  'Ann',
  'änn',
  '😀',
  'n'.repeat(65_535)
];
