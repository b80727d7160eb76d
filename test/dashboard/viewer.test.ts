import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exportConfiguration } from 'embermq';
import { startConsole } from '../support/dashboard.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Operations with a method of changes that only read. */
const READING = [
  'POST /api/auth',
  'POST /api/x/rules/validate',
  'POST /streams/',
  'POST /streams/rules/validate',
  'POST /streams/ruletest',
  'POST /streams/x/rules/validate'
];

/** Operations that read password hashes or secrets. */
const FOR_ADMINISTRATORS = [
  'GET /api/auth_clientid/{clientid}',
  'GET /api/auth_user',
  'GET /api/auth_user/{login}',
  'GET /api/auth_username/{username}',
  'GET /api/x/export'
];

describe('The session of a viewer', () => {
  it('may use no operation of the two interfaces that changes something', async () => {
    await using server = await startConsole({ prefix: '/console' });
    const viewer = server.browser();
    await viewer.login('bob', undefined, '/console');
    const before = await exportConfiguration(server.broker);
    const allowed: string[] = [];
    const refused: string[] = [];
    let count = 0;
    for (const mount of ['/console/api', '/console/streams']) {
      const { body } = await viewer.send('GET', `${mount}/openapi.json`);
      for (const [path, methods] of Object.entries((body as Document).paths))
        for (const method of Object.keys(methods)) {
          const name = `${method.toUpperCase()} ${mount.slice('/console'.length)}${path}`;
          if (/\/(events|tail)$/.test(path)) continue;
          const target = `${mount}${path.replace(/\{[^}]+\}/g, 'ann')}`;
          const { status } = await viewer.send(method.toUpperCase(), target, method === 'get' ? undefined : {});
          count++;
          if (method === 'get' ? status === 403 : status !== 403) (method === 'get' ? refused : allowed).push(name);
        }
    }
    assert.ok(count > 150, `${count} operations`);
    assert.deepEqual(allowed.sort(), READING);
    assert.deepEqual(refused.sort(), FOR_ADMINISTRATORS);
    assert.deepEqual((await exportConfiguration(server.broker)).sections, before.sections);
  });
});
