import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { VirtualClock } from 'embermq/testing';
import { serveManagement, startBroker } from '../support/management.ts';
import { randomSource } from '../topics/slow-matcher.ts';

type Row = Readonly<Record<string, string>>;
type Server = Awaited<ReturnType<typeof serveManagement>>;

const LIMIT = 3;

/** Read a list page by page. @param between called after each page */
async function walked(server: Server, path: string, between: () => Promise<void>): Promise<Row[]> {
  const rows: Row[] = [];
  for (let page = 1; ; page++) {
    const { data } = (await server.call('GET', `${path}_page=${page}&_limit=${LIMIT}`)).body;
    rows.push(...data);
    if (data.length < LIMIT) return rows;
    await between();
  }
}

/** The lists of the directory, by revision: the path, and the key of a row. */
const LISTS = [
  ['later', '/api/clients?', ({ clientid }: Row) => clientid],
  ['later', '/api/clients?_like_clientid=c&', ({ clientid }: Row) => clientid],
  ['later', '/api/subscriptions?', ({ clientid, topic }: Row) => `${clientid} ${topic}`],
  ['later', '/api/subscriptions?qos=1&', ({ clientid, topic }: Row) => `${clientid} ${topic}`],
  ['later', '/api/subscriptions/c0?', ({ topic }: Row) => topic],
  ['later', '/api/routes?', ({ topic }: Row) => topic],
  ['earlier', '/api/connections?', ({ client_id: id }: Row) => id],
  ['earlier', '/api/sessions?', ({ client_id: id }: Row) => id]
] as const;

describe('Lists that are read page by page', () => {
  for (const [revision, path, keyOf] of LISTS) {
    it(`returns each row of ${path.replace(/\W$/, '')} once that exists from the first page to the last, while others are added and removed`, async () => {
      const { below } = randomSource(path);
      await using broker = await startBroker();
      await using server = await serveManagement(broker, { revision });
      let last = 0;
      const passing: string[] = [];
      const connect = (clientId: string) => broker.connect({ clientId, sessionExpiry: 60 });
      const come = async () => {
        passing.push(`passing${++last}c`);
        await connect(`passing${last}c`);
      };
      const clients: Awaited<ReturnType<typeof connect>>[] = [];
      for (let number = 0; number < 10; number++) {
        clients.push(await connect(`c${number}`));
        await come();
      }
      for (const one of [0, 2, 4, 6, 8])
        for (let topic = 0; topic < 10; topic++) await clients[one].subscribe(`t${topic}`, { qos: 1 });
      const keys = async () =>
        new Set((await server.call('GET', `${path}_limit=1000`)).body.data.map(keyOf) as string[]);
      const stayed = await keys();
      const change = async () => {
        for (let times = 0; times < 3; times++) {
          const number = below(10);
          const filter = `t${below(10)}${below(2) === 0 ? '' : `/${below(10)}`}`;
          const isThere = [...broker.sessions.get(`c${number}`).subscriptions()].some((one) => one.filter === filter);
          if (isThere) await clients[number].unsubscribe(filter);
          else await clients[number].subscribe(filter, { qos: 1 });
          if (below(2) === 0) await come();
          else if (passing.length > 0) await broker.sessions.kick(passing.splice(below(passing.length), 1)[0]);
        }
        const now = await keys();
        for (const key of stayed) if (!now.has(key)) stayed.delete(key);
      };
      const rows = (await walked(server, path, change)).map(keyOf);
      const gone = [...stayed].filter((key) => !rows.includes(key));
      assert.deepEqual([rows.filter((key, at) => rows.indexOf(key) < at), gone], [[], []]);
      assert.ok(stayed.size > LIMIT);
    });
  }

  it('continues at the end of the previous page only for a minute, for the same caller, conditions and limit', async () => {
    const clock = new VirtualClock();
    await using broker: Broker = await startBroker({ clock });
    await using server = await serveManagement(broker, { credentials: (id) => id !== 'nobody' });
    const names = async (query: string, id = 'a') => {
      const headers = { authorization: `Basic ${Buffer.from(`${id}:x`).toString('base64')}` };
      const { body } = await server.call('GET', `/api/routes?${query}`, undefined, headers);
      return body.data.map(({ topic }: Row) => topic);
    };
    for (const topic of ['b', 'd', 'f', 'h']) broker.subscribe(topic, () => {});
    assert.deepEqual(await names('_limit=2'), ['b', 'd']);
    broker.subscribe('a', () => {});
    assert.deepEqual(await names('_limit=2&_page=2'), ['f', 'h']);
    assert.deepEqual(await names('_limit=2&_page=2', 'other'), ['d', 'f']);
    assert.deepEqual(await names('_limit=3&_page=2'), ['f', 'h']);
    await clock.advance('61s');
    assert.deepEqual(await names('_limit=2&_page=2'), ['d', 'f']);
  });
});
