import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;
const HOSTILE = ['<img onerror=alert(1)>', '\u202etxet', '   ', 'a'.repeat(60_000), '(a+)+$', '%2e%2e', '__proto__'];

interface Row {
  readonly kind: string;
  readonly name: string;
  readonly detail: string;
}

/** Add one of each kind. */
async function fill(broker: Broker): Promise<void> {
  const client = await broker.connect({ clientId: 'pump-1', sessionExpiry: '1h' });
  await client.subscribe('pump/+/state');
  await client.subscribe('$share/group/pump/shared');
  await broker.publish('pump/1/state', 'on', { retain: true });
  await broker.rules.create({
    id: 'pump-rule',
    sql: 'SELECT * FROM "pump/#"',
    description: 'pumps that fail',
    actions: [{ name: 'do_nothing' }]
  });
  await broker.streams.create('CREATE STREAM pumps () WITH (DATASOURCE="pump/#", FORMAT="JSON")');
  await broker.streams.rules.create({ id: 'pump-stream', sql: 'SELECT * FROM pumps', actions: [{ nop: {} }] });
}

const FILLED: readonly Row[] = [
  { kind: 'client', name: 'pump-1', detail: 'connected' },
  { kind: 'topic', name: 'pump/1/state', detail: '2 bytes' },
  { kind: 'subscription', name: 'pump/+/state', detail: '' },
  { kind: 'subscription', name: 'pump/shared', detail: '' },
  { kind: 'rule', name: 'pump-rule', detail: 'pumps that fail' },
  { kind: 'stream_rule', name: 'pump-stream', detail: 'Running' }
];

describe('The search over REST', () => {
  it('finds each kind by the beginning of its name and with wildcards, in all revisions', async () => {
    await using broker = await startBroker();
    await fill(broker);
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const search = async (q: string, more = '') => {
        const { status, body } = await server.call('GET', `/api/x/search?q=${encodeURIComponent(q)}${more}`);
        assert.deepEqual([status, body.code], [200, 0], q);
        return body.data;
      };
      const sorted = (rows: readonly Row[]) => rows.map(({ kind, name, detail }) => `${kind} ${name} ${detail}`).sort();
      for (const q of ['pump', 'PUMP', 'p*'])
        assert.deepEqual(
          sorted((await search(q)).entries.filter(({ name }: Row) => name !== 'pumps')),
          sorted(FILLED),
          q
        );
      assert.deepEqual(
        (await search('*state')).entries.map(({ name }: Row) => name),
        ['pump/1/state', 'pump/+/state']
      );
      const limited = await search('pump', '&limit=1');
      assert.deepEqual(
        [limited.is_complete, limited.entries.filter(({ kind }: Row) => kind === 'subscription').length],
        [false, 1]
      );
      assert.deepEqual(await search('nothing'), { is_complete: true, entries: [] });
    }
  });

  it('finds hostile names as they are', async () => {
    await using broker = await startBroker({ maxClientidLen: 65_535, maxTopicLevels: 128 });
    for (const name of HOSTILE) {
      await broker.connect({ clientId: name });
      await broker.publish(name.replaceAll(/[+#]/g, ''), 'x', { retain: true });
    }
    await using server = await serveManagement(broker, { revision: 'later' });
    for (const name of HOSTILE) {
      const q = name.slice(0, 256);
      const { body } = await server.call('GET', `/api/x/search?q=${encodeURIComponent(q)}`);
      const client = body.data.entries.find(({ kind }: Row) => kind === 'client');
      assert.equal(client?.name, name);
    }
  });

  it('refuses a text that is missing, empty or too long, and a limit that is not valid', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { revision: 'later' });
    for (const [query, code] of [
      ['', 107],
      ['?q=', 108],
      [`?q=${'a'.repeat(257)}`, 108],
      ['?q=a&limit=0', 108],
      ['?q=a&limit=101', 108],
      ['?q=a&limit=many', 108],
      ['?q=a&q=b', 108]
    ] as const) {
      const { status, body } = await server.call('GET', `/api/x/search${query}`);
      assert.deepEqual([status, body.code], [400, code], query.slice(0, 20));
    }
  });
});
