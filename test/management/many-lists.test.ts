import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { managementApi } from 'embermq/management';
import { VirtualClock } from 'embermq/testing';
import { SLICES_AT_ONCE } from '../../lib/base/collections/slice-queue.ts';
import { AUTHORIZATION, startBroker } from '../support/management.ts';
import { IS_LONG, sized } from '../support/samples.ts';

const CLIENTS = sized(600, 1_000);
const REQUESTS = sized(40, 100);
/** Maximum number of rows that one slice produces. */
const ROWS = 250;

/** The lists of the directory, by revision, with a string that each row contains. */
const LISTS = [
  ['later', '/api/clients', '"clientid":'],
  ['later', '/api/clients?_like_clientid=c', '"clientid":'],
  ['later', '/api/subscriptions', '"topic":'],
  ['later', '/api/routes', '"topic":'],
  ['later', '/api/x/retained?_limit=1000', '"topic":'],
  ['earlier', '/api/connections', '"client_id":'],
  ['earlier', '/api/sessions', '"client_id":']
] as const;

/** A broker with clients, each with a subscription and a retained message. Its clock stands still. */
async function crowdedBroker(clients: number) {
  const broker = await startBroker({ clock: new VirtualClock(), maxSessions: 0 });
  for (let at = 0; at < clients; at++) {
    const client = await broker.connect({ clientId: `c${at}` });
    await client.subscribe(`t/${at}`);
    await broker.publish(`t/${at}`, 'x', { retain: true });
  }
  return broker;
}

describe('Many lists that are requested at once', () => {
  it('shares one budget between all answers: the rows in one turn are limited', async () => {
    await using broker = await crowdedBroker(CLIENTS);
    for (const [revision, path, word] of IS_LONG ? LISTS : LISTS.filter((_, at) => at % 2 === 0)) {
      const { fetch } = managementApi(broker, { revision, prefix: '/api' });
      const perTurn = [0];
      let isDone = false;
      const turn = () => {
        perTurn.push(0);
        if (!isDone) setImmediate(turn);
      };
      setImmediate(turn);
      const decoder = new TextDecoder();
      const read = async () => {
        const { body } = await fetch(
          new Request(`http://broker${path}`, { headers: { authorization: AUTHORIZATION } })
        );
        let rows = 0;
        assert.ok(body !== null);
        for await (const chunk of body) {
          const some = decoder.decode(chunk).split(word).length - 1;
          perTurn[perTurn.length - 1] += some;
          rows += some;
        }
        return rows;
      };
      const rows = await Promise.all(Array.from({ length: REQUESTS }, read));
      isDone = true;
      assert.ok(Math.min(...rows) >= CLIENTS, `${path}: ${Math.min(...rows)} rows`);
      const most = Math.max(...perTurn);
      assert.ok(most <= SLICES_AT_ONCE * ROWS, `${path}: ${most} rows in one turn`);
    }
  });

  it('produces rows no further than clients read', async () => {
    await using broker = await crowdedBroker(1_000);
    const { directory } = broker;
    let parts = 0;
    const { parts: original } = directory;
    directory.parts = ((...given: Parameters<typeof original>) => {
      const source = original.apply(directory, given);
      return (async function* () {
        for await (const part of source) {
          parts++;
          yield part;
        }
      })();
    }) as typeof original;
    const { fetch } = managementApi(broker, { revision: 'later', prefix: '/api' });
    const request = () =>
      fetch(new Request('http://broker/api/clients', { headers: { authorization: AUTHORIZATION } }));
    const answers = await Promise.all(Array.from({ length: REQUESTS }, request));
    for (let turns = 0; turns < 500; turns++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(parts <= 2 * REQUESTS, `${parts} parts for ${REQUESTS} clients that read nothing`);
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    for (const text of texts) assert.equal(JSON.parse(text).data.length, 1_000);
    assert.ok(parts > 4 * REQUESTS);
  });
});
