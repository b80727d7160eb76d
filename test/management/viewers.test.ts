import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, exportConfiguration } from 'embermq';
import { exampleOf } from '../../adapters/management/openapi.ts';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { REVISION_ROWS, REVISIONS } from '../../adapters/management/revisions.ts';
import { serveManagement } from '../support/management.ts';
import { startExampleBroker } from '../support/management-fixture.ts';

const VIEWER = { authorization: `Basic ${Buffer.from('bob:password of bob').toString('base64')}` };
const ADMINISTRATOR = { authorization: `Basic ${Buffer.from('ann:password of ann').toString('base64')}` };

/** The operations that only read and that viewers may not use all the same. Their answers have hashes of passwords. */
const REFUSED = ['GET /auth_clientid/:clientid', 'GET /auth_username/:username', 'GET /x/export'];
/** Those that the earlier revision does not have. */
const REFUSED_LATER = ['GET /auth_user', 'GET /auth_user/:login'];

/** The hashes of all passwords and secrets of a broker. */
async function hashesOf(broker: Broker): Promise<string[]> {
  const { sections } = await exportConfiguration(broker);
  const lists = [sections.clientIds, sections.usernames, sections.logins, sections.applications, sections.users];
  return lists.flatMap((entries) =>
    (entries ?? []).flatMap((entry) =>
      Object.entries(entry)
        .filter(([name]) => /hash|salt/i.test(name))
        .map(([, value]) => String(value))
    )
  );
}

describe('Viewers', () => {
  for (const revision of REVISIONS)
    it(`may read everything but the hashes of passwords, in the revision "${revision}"`, async () => {
      await using broker = await startExampleBroker();
      await using server = await serveManagement(broker, { revision, credentials: 'users' });
      const hashes = await hashesOf(broker);
      assert.ok(hashes.length >= 7, `${hashes.length} hashes`);
      const refused: string[] = [];
      for (const row of OPERATIONS) {
        if (row.method !== 'GET' || row.isStream === true || row.in?.includes(revision) === false) continue;
        const { params = {}, query = {} } = exampleOf(row, REVISION_ROWS[revision]) ?? {};
        const path = row.path.replace(/:([^/]+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
        const given = Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`]);
        const target = `/api${path}?${new URLSearchParams(given)}`;
        const { status, text } = await server.call('GET', target, undefined, VIEWER);
        assert.ok(!hashes.some((hash) => text.includes(hash)), `GET ${row.path} shows a viewer a hash`);
        if (status === 403) {
          refused.push(`GET ${row.path}`);
          assert.equal((await server.call('HEAD', target, undefined, VIEWER)).status, 403);
          assert.equal((await server.call('GET', target, undefined, ADMINISTRATOR)).status, 200);
        } else assert.equal(status, 200, `GET ${row.path}: ${text}`);
      }
      assert.deepEqual(refused.sort(), [...REFUSED, ...(revision === 'earlier' ? [] : REFUSED_LATER)].sort());
    });
});
