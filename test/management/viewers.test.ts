import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, exportConfiguration } from 'embermq';
import type { Operation } from '../../adapters/management/operation.ts';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { REVISION_ROWS, REVISIONS, type RevisionName } from '../../adapters/management/revisions.ts';
import { exampleOf } from '../../adapters/rest/kit/index.ts';
import { serveManagement } from '../support/management.ts';
import { MEASURED, passTime, startExampleBroker } from '../support/management-fixture.ts';

const VIEWER = { authorization: `Basic ${Buffer.from('bob:password of bob').toString('base64')}` };
const ADMINISTRATOR = { authorization: `Basic ${Buffer.from('ann:password of ann').toString('base64')}` };

/** Operations that only read but that viewers may not use, because their answers contain password hashes. */
const REFUSED = ['GET /auth_clientid/:clientid', 'GET /auth_username/:username', 'GET /x/export'];
/** Operations of this kind that the earlier revision does not have. */
const REFUSED_LATER = ['GET /auth_user', 'GET /auth_user/:login'];

/** The operations of a revision. */
const rowsOf = (revision: RevisionName) => OPERATIONS.filter((row) => row.in?.includes(revision) !== false);

/** The request of the example of an operation, with other path parameters if given. */
function exampleRequest(row: Operation, revision: RevisionName, own: Readonly<Record<string, string>> = {}) {
  const { params, query = {}, body } = exampleOf(row, REVISION_ROWS[revision]) ?? {};
  const values: Readonly<Record<string, string | undefined>> = { ...params, ...own };
  const path = row.path.replace(/:([^/]+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  const given = Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`]);
  return { target: `/api${path}?${new URLSearchParams(given)}`, body };
}

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
    it(`lets viewers read everything except password hashes, in the revision "${revision}"`, async () => {
      await using broker = await startExampleBroker();
      await using server = await serveManagement(broker, { revision, credentials: 'users' });
      const hashes = await hashesOf(broker);
      assert.ok(hashes.length >= 7, `${hashes.length} hashes`);
      const refused: string[] = [];
      for (const row of rowsOf(revision)) {
        if (row.method !== 'GET' || row.isStream === true) continue;
        const { target } = exampleRequest(row, revision);
        const answer = server.call('GET', target, undefined, VIEWER);
        const { status, text } = await (row.name === MEASURED ? passTime(broker, answer) : answer);
        assert.ok(!hashes.some((hash) => text.includes(hash)), `GET ${row.path} shows a viewer a hash`);
        if (status === 403) {
          refused.push(`GET ${row.path}`);
          assert.equal((await server.call('HEAD', target, undefined, VIEWER)).status, 403);
          assert.equal((await server.call('GET', target, undefined, ADMINISTRATOR)).status, 200);
        } else assert.equal(status, 200, `GET ${row.path}: ${text}`);
      }
      assert.deepEqual(refused.sort(), [...REFUSED, ...(revision === 'earlier' ? [] : REFUSED_LATER)].sort());
    });

  for (const revision of REVISIONS)
    it(`lets viewers change nothing but their own password, in the revision "${revision}"`, async () => {
      await using broker = await startExampleBroker();
      await using server = await serveManagement(broker, { revision, credentials: 'users' });
      const before = await exportConfiguration(broker);
      const allowed: string[] = [];
      for (const row of rowsOf(revision)) {
        if (row.method === 'GET') continue;
        const { target, body } = exampleRequest(row, revision, { username: 'ann' });
        const { status, text } = await server.call(row.method, target, body, VIEWER);
        if (status === 200) allowed.push(row.name);
        else assert.equal(status, 403, `${row.method} ${row.path}: ${text}`);
      }
      // one checks a password, the other a statement
      assert.deepEqual(allowed, ['auth_user', 'validate_rule_statement']);
      assert.deepEqual((await exportConfiguration(broker)).sections, before.sections);
      const passwords = { old_pwd: 'password of bob', new_pwd: 'another' };
      assert.equal((await server.call('PUT', '/api/change_pwd/bob', passwords, VIEWER)).status, 200);
      assert.equal((await server.call('GET', '/api/clients', undefined, VIEWER)).status, 401);
    });
});
