// The promises of a source, as cases that every type of source runs, opened by the hub as for a rule. What a source is
// capable of is what its case gives: a connection that can be interrupted, payloads that can be malformed.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { InvalidInput } from '../../lib/index.ts';
import type { SourceHub } from '../../lib/streams/sources/hub.ts';
import type { OpenSource, Properties, SourceType } from '../../lib/streams/types.ts';
import { ALL, Kept, makeHub, stream } from '../streams/source-fixture.ts';

/** A source type with what it reads from. */
export interface HeldOrigin extends AsyncDisposable {
  readonly type: SourceType;
  readonly properties: Properties;
  readonly datasource?: string;
  readonly dataDir?: string;
  /** Make the source receive a payload. It is called when the source is connected. */
  give(payload: string, hub: SourceHub): unknown;
  /** The connection between the source and its server. Absent for sources in this process. */
  readonly line?: {
    stop(): Promise<unknown>;
    start(): Promise<unknown>;
    /** Number of open connections. */
    readonly connections?: number;
  };
}

/** A source of the contract. */
export interface SourceCase {
  /** Begins with the name of the type. */
  readonly name: string;
  readonly skip?: string | false;
  open(): Promise<HeldOrigin>;
  /** True if the source can be interrupted: `open` gives a line. */
  readonly hasLine?: true;
  /** True if the FORMAT of the stream decodes what it receives. */
  readonly hasPayloads?: true;
  /** Properties that can never be used, each with the name that the error has. */
  readonly invalid?: readonly (readonly [field: string, properties: Properties])[];
}

/** Text that no error and no status may contain. */
const SECRET = 'a-secret-value';
const ROWS = [1, 2, 3].map((n) => ({ n }));

/** Attach a consumer to a source, as a rule does. */
function attach(origin: HeldOrigin, more: Properties = {}) {
  const opened: OpenSource[] = [];
  const { type, dataDir, datasource = '' } = origin;
  const observed: SourceType = {
    ...type,
    async open(setup) {
      const source = (await type.open?.(setup)) ?? assert.fail(`${type.name} is not for streams`);
      opened.push(source);
      return source;
    }
  };
  const { hub, clock, reported } = makeHub([], {
    ...{ dataDir, sourceConfig: { [type.name]: { default: { ...origin.properties, ...more } } } },
    source: () => observed
  });
  const kept = new Kept();
  const attachment = hub.attach(stream({ TYPE: type.name, DATASOURCE: datasource }), ALL, kept);
  attachment.opened.catch(() => undefined); // the cases that expect an error ask again
  /** Let time pass until a condition holds, slowly enough for a server that takes a second of real time to answer within 30 of the clock. */
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) {
      clock.advance(20);
      await setTimeout(1);
    }
  };
  return {
    ...{ opened, hub, clock, reported, kept, attachment, until },
    /** Wait for the connection; sources that only ask have one with the first answer. */
    connected: () => until(() => attachment.connection.status === 1),
    /** Everything that people are shown about the source. */
    shown: () => [attachment.connection.disconnectedMessage, ...kept.errors, ...reported].join('\n').trim(),
    /** Check that nothing is left of the source. */
    async released(): Promise<void> {
      for (let turns = 0; turns < 2_000 && (origin.line?.connections ?? 0) > 0; turns++) await setTimeout(1);
      assert.equal(origin.line?.connections ?? 0, 0, 'a connection is open');
      assert.equal(clock.pending, 0, 'a timer is pending');
    }
  };
}

/** Values with numbers of every kind and spelling as numbers. */
const numbersOf = (values: readonly unknown[]) => values.map((value) => ({ n: Number((value as { n: unknown }).n) }));

/** Run the cases of the contract for a type of source. */
export function sourceContract({ name, skip = false, open, hasLine, hasPayloads, invalid = [] }: SourceCase): void {
  describe(`the source ${name}`, { skip }, () => {
    it(`passes the rows of ${name} in order, and shows that it is connected`, async () => {
      await using origin = await open();
      const { attachment, kept, hub, until, connected, released, shown } = attach(origin);
      await attachment.opened;
      await connected();
      for (const [at, row] of ROWS.entries()) {
        await origin.give(JSON.stringify(row), hub);
        await until(() => kept.rows.length > at);
      }
      assert.deepEqual(numbersOf(kept.values), ROWS);
      assert.equal(attachment.connection.status, 1);
      assert.equal(shown(), '');
      await attachment.detach();
      await released();
    });

    it(`passes no rows of ${name} after it has been closed, which may be done twice`, async () => {
      await using origin = await open();
      const { attachment, kept, hub, clock, until, connected, released, opened } = attach(origin);
      await attachment.opened;
      await connected();
      await origin.give('{"n":1}', hub);
      await until(() => kept.rows.length > 0);
      await attachment.detach();
      const count = kept.rows.length;
      for (const source of opened) await source.close();
      await released();
      await Promise.resolve(origin.give('{"n":2}', hub)).catch(() => undefined); // its receiver may be gone
      clock.advance(60_000);
      for (let turns = 0; turns < 5; turns++) await setImmediate();
      assert.equal(kept.rows.length, count);
      await released();
    });

    it(`releases ${name} if it is closed while it opens or connects`, async () => {
      await using origin = await open();
      for (const turns of [0, 1, 2, 4, 8, 16]) {
        const { attachment, released } = attach(origin);
        for (let n = 0; n < turns; n++) await setImmediate();
        await attachment.detach();
        for (let n = 0; n < 20; n++) await setImmediate();
        await released();
      }
    });

    it(`reports a property that ${name} does not know`, async () => {
      await using origin = await open();
      const { attachment, reported } = attach(origin, { unheardOf: 1 });
      await attachment.opened;
      assert.match(
        reported.join(),
        new RegExp(`source ${origin.type.name} of stream demo: .*"unheardOf" has no effect`)
      );
      await attachment.detach();
    });

    if (hasPayloads)
      it(`reports malformed payloads of ${name} to the rule, and continues`, async () => {
        await using origin = await open();
        const { attachment, kept, hub, until, connected } = attach(origin);
        await attachment.opened;
        await connected();
        await origin.give('no JSON', hub);
        await until(() => kept.errors.length > 0);
        assert.match(kept.errors[0], /JSON/);
        await origin.give('{"n":2}', hub);
        await until(() => kept.rows.length > 0);
        assert.deepEqual(numbersOf(kept.values), [{ n: 2 }]);
        await attachment.detach();
      });

    if (hasLine)
      it(`opens ${name} without its server, shows why, and connects when there is one`, async () => {
        await using origin = await open();
        const line = origin.line ?? assert.fail('there is no line');
        await line.stop();
        const { attachment, kept, hub, until, connected, released, shown } = attach(origin);
        await attachment.opened;
        await until(() => attachment.connection.status === -1);
        assert.notEqual(attachment.connection.disconnectedMessage, '');
        await line.start();
        await connected();
        await origin.give('{"n":1}', hub);
        await until(() => kept.rows.length > 0);
        assert.deepEqual(numbersOf(kept.values), [{ n: 1 }]);
        for (const secret of secretsOf(origin)) assert.equal(shown().includes(secret), false, shown());
        await line.stop();
        await until(() => attachment.connection.status === -1);
        await attachment.detach();
        await released();
      });

    for (const [field, properties] of invalid)
      it(`does not open ${name} if its ${field} can never be used, and names the stream and the property`, async () => {
        await using origin = await open();
        const opening = async () => {
          const { attachment, released } = attach(origin, properties);
          await attachment.opened.finally(() => attachment.detach().then(released));
        };
        await assert.rejects(opening, (error) => {
          assert.ok(error instanceof InvalidInput, String(error));
          assert.equal(error.field, field);
          assert.match(error.message, /demo/);
          assert.ok(error.message.includes(field), error.message);
          assert.equal(`${error.message} ${String(error.got)}`.includes(SECRET), false, error.message);
          return true;
        });
      });
  });
}

/** A lookup table of the contract. */
export interface LookupCase extends Pick<SourceCase, 'name' | 'skip' | 'hasLine'> {
  /** `give` adds the row `{ n }` with the key `n`. It is called when the table is open. */
  open(): Promise<HeldLookup>;
}

/** A source type with what its lookup tables read. */
interface HeldLookup extends Omit<HeldOrigin, 'give'> {
  give(n: number): unknown;
}

/** Run the cases of the contract for lookup tables of a type. */
export function lookupContract({ name, skip = false, open, hasLine }: LookupCase): void {
  const openTable = async ({ type, properties, datasource = '' }: HeldLookup) => {
    const fixture = makeHub([], { sourceConfig: { [type.name]: { default: properties } }, source: () => type });
    const options = { TYPE: type.name, KIND: 'lookup', DATASOURCE: datasource, KEY: 'n' };
    const { open: table } = await fixture.hub.openLookup(stream(options, undefined, 'table'), ['n']);
    return { ...fixture, table, find: async (n: number) => numbersOf([...(await table.find(['n'], [n]))]) };
  };

  describe(`the lookup table ${name}`, { skip }, () => {
    it(`finds rows of ${name} by their key, and can be closed twice`, async () => {
      await using origin = await open();
      const { table, find, clock } = await openTable(origin);
      for (const n of [1, 2]) await origin.give(n);
      assert.deepEqual([await find(2), await find(1), await find(3)], [[{ n: 2 }], [{ n: 1 }], []]);
      for (let times = 0; times < 2; times++) await table.close();
      for (let turns = 0; turns < 2_000 && (origin.line?.connections ?? 0) > 0; turns++) await setTimeout(1);
      assert.deepEqual([origin.line?.connections ?? 0, clock.pending], [0, 0]);
    });

    if (hasLine)
      it(`opens ${name} without its server, rejects with the reason, and finds rows when there is one`, async () => {
        await using origin = await open();
        const line = origin.line ?? assert.fail('there is no line');
        await line.stop();
        const { table, find, clock } = await openTable(origin);
        await assert.rejects(find(1), ({ message }: Error) => {
          for (const secret of secretsOf(origin)) assert.equal(message.includes(secret), false, message);
          return message !== '';
        });
        await line.start();
        clock.advance(30_000);
        await origin.give(1);
        assert.deepEqual(await find(1), [{ n: 1 }]);
        await table.close();
      });
  });
}

/** The values of the properties that are secrets. */
function secretsOf({ type, properties }: Pick<HeldOrigin, 'type' | 'properties'>): string[] {
  const fields = Object.entries(type.properties ?? {}) as [string, { readonly isSecret?: true }][];
  return fields.flatMap(([name, { isSecret }]) =>
    isSecret === true && properties[name] ? [String(properties[name])] : []
  );
}

/** A URL with a secret, which no error may show. */
export const urlWithSecret = (scheme: string) => `${scheme}://user:${SECRET}@host:1`;
