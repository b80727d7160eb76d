import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { type DashboardLogin, dashboard } from 'embermq/dashboard';
import { Sessions } from '../../adapters/dashboard/sessions.ts';
import type { Caller } from '../../adapters/rest/index.ts';
import { startConsole } from '../support/dashboard.ts';
import { readerOf } from '../support/event-reader.ts';
import { ManualClock } from '../support/manual-clock.ts';

const HOUR_MS = 3_600_000;
const BACKGROUND = { 'embermq-console': 'background' };

async function startWithClock() {
  const clock = new ManualClock();
  const server = await startConsole({}, { clock });
  const browser = server.browser();
  await browser.login('ann');
  const status = async (headers?: Record<string, string>) =>
    (await browser.send('GET', '/session', undefined, headers)).status;
  return {
    clock,
    server,
    browser,
    status,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]()
  };
}

describe('Sessions of the console', () => {
  it('ends a session after 8 hours without a request of a person, although the page polls', async () => {
    await using test = await startWithClock();
    test.clock.advance(7 * HOUR_MS);
    assert.equal(await test.status(), 200, 'a person has done something');
    for (let hour = 0; hour < 7; hour++) {
      test.clock.advance(HOUR_MS);
      assert.equal(await test.status(BACKGROUND), 200);
      assert.equal((await test.browser.send('GET', '/api/clients', undefined, BACKGROUND)).status, 200);
    }
    test.clock.advance(HOUR_MS);
    assert.equal(await test.status(BACKGROUND), 401);
    assert.equal(await test.status(), 401);
  });

  it('ends a session after 7 days, although a person uses it', async () => {
    await using test = await startWithClock();
    for (let hour = 0; hour < 7 * 24 - 1; hour += 7) {
      test.clock.advance(7 * HOUR_MS);
      if (hour < 7 * 24 - 7) assert.equal(await test.status(), 200, `${hour}`);
    }
    assert.equal(await test.status(), 401);
  });

  it('ends sessions with the password, the role and the user, but not when other tags change', async () => {
    await using server = await startConsole();
    const { users } = server.broker;
    const browser = server.browser();
    const ends: [id: string, end: () => Promise<unknown>, status: number][] = [
      ['ann', () => users.changePassword('ann', 'a password', 'another password'), 401],
      ['bob', () => users.update('bob', 'other tags'), 200],
      ['bob', () => users.update('bob', 'administrator'), 401],
      ['bob', () => users.delete('bob'), 401]
    ];
    for (const [id, end, status] of ends) {
      assert.equal((await browser.login(id)).status, 200);
      await end();
      assert.equal((await browser.send('GET', '/session')).status, status);
    }
  });

  it('gives a new user no session of a former one with the same name', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('bob');
    await server.broker.users.delete('bob');
    await server.broker.users.create('bob', 'a password', 'administrator');
    assert.equal((await browser.send('GET', '/session')).status, 401);
  });

  it('ends sessions when the broker stops, and opens others after its next start', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    await server.broker.stop();
    await server.broker.start();
    assert.equal((await browser.send('GET', '/session')).status, 401);
    assert.equal((await browser.login('ann')).status, 200);
  });

  it('replaces the session of a browser at its next login', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    const { cookie = '' } = browser;
    await browser.login('bob');
    assert.equal((await browser.send('GET', '/session', undefined, { cookie })).status, 401);
    assert.equal((await browser.send('GET', '/session')).body.id, 'bob');
  });
});

describe('The table of sessions', () => {
  const caller: Caller = { kind: 'user', id: 'ann', scope: 'viewer', mayLoadCode: false };

  it('keeps at most 1,000 sessions: the one that has been idle for the longest time ends', () => {
    const clock = new ManualClock();
    const sessions = new Sessions(clock);
    const tokens: string[] = [];
    for (let at = 0; at < 1_000; at++) {
      clock.advance(1);
      tokens.push(sessions.open({ ...caller, id: `${at}` }).token);
    }
    sessions.find(tokens[0], true);
    sessions.find(tokens[1], false);
    let ended = 0;
    sessions.find(tokens[1], false)?.onEnd(() => ended++);
    sessions.open(caller);
    const known = tokens.slice(0, 3).map((token) => sessions.find(token, false) !== undefined);
    assert.deepEqual([known, ended], [[true, false, true], 1]);
  });

  it('keeps 20 sessions of a person, and then ends the one that has been idle for the longest time', () => {
    const sessions = new Sessions(new ManualClock());
    const other = sessions.open({ ...caller, id: 'other' }).token;
    const tokens = Array.from({ length: 20 }, () => sessions.open(caller).token);
    sessions.find(tokens[0], true);
    for (let more = 0; more < 1_000; more++) sessions.open({ ...caller, id: 'mallory' });
    sessions.open(caller);
    const isKept = (token: string) => sessions.find(token, false) !== undefined;
    assert.deepEqual([isKept(other), tokens.map(isKept)], [true, tokens.map((_, at) => at !== 1)]);
  });

  it('ends what was opened with a session when its time is over, with one timer', () => {
    const clock = new ManualClock();
    const sessions = new Sessions(clock);
    const ended: string[] = [];
    for (const name of ['first', 'second']) {
      sessions.open(caller).session.onEnd(() => ended.push(name));
      clock.advance(HOUR_MS);
    }
    assert.equal(clock.pending, 1);
    clock.advance(6 * HOUR_MS);
    assert.deepEqual(ended, ['first']);
    clock.advance(HOUR_MS);
    assert.deepEqual([ended, clock.pending], [['first', 'second'], 0]);
  });

  it('ends at once what is opened with a session that is over', () => {
    const sessions = new Sessions(new ManualClock());
    const { session } = sessions.open(caller);
    sessions.end(session);
    let ended = false;
    session.onEnd(() => {
      ended = true;
    });
    assert.deepEqual([ended, session.isOpen], [true, false]);
  });
});

describe('The logins of a host app', () => {
  async function startWithHost(found: (header: string | undefined) => unknown) {
    const errors: string[] = [];
    const server = await startConsole({
      login: (request) => {
        assert.ok('socket' in request);
        return found(request.headers['x-person'] as string | undefined) as DashboardLogin | undefined;
      },
      loginUrl: '/app/login'
    });
    server.broker.on('error', ({ error }) => void errors.push(error.message));
    return { server, errors, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }

  const byName = (name: string | undefined) =>
    name === undefined ? undefined : { id: name, scope: name === 'root' ? 'administrator' : 'viewer' };

  it('asks the function of the app for each request, and lets the person do what it says', async () => {
    await using test = await startWithHost(byName);
    const browser = test.server.browser();
    const refused = await browser.send('GET', '/session');
    assert.deepEqual([refused.status, refused.body.login, refused.body.loginUrl], [401, 'host', '/app/login']);
    const opened = await browser.send('GET', '/session', undefined, { 'x-person': 'eve' });
    assert.deepEqual([opened.status, opened.body.id, opened.body.scope], [200, 'eve', 'viewer']);
    const ban = { who: 'x', as: 'clientid' };
    const post = async (person: string) =>
      (await browser.send('POST', '/api/banned', ban, { 'x-person': person })).status;
    assert.deepEqual([await post('eve'), await post('root')], [403, 200]);
    const user = { username: 'new', password: 'a new password' };
    const grant = async (person: string) =>
      (await browser.send('POST', '/api/users', user, { 'x-person': person })).status;
    assert.deepEqual([await grant('eve'), await grant('root')], [403, 200]);
    const entries = test.server.broker.monitor.audit.list({ operation: 'create_banned' }).entries;
    assert.deepEqual(
      entries.map(({ caller }) => caller.id),
      ['root', 'eve']
    );
  });

  it('asks a program for a login of the app if the broker has no users', async () => {
    const broker = createBroker();
    await broker.start();
    const errors: string[] = [];
    broker.on('error', ({ error }) => void errors.push(error.message));
    const { fetch } = dashboard(broker, { prefix: '/console', login: () => undefined });
    const answer = await fetch(new Request('http://localhost/console/api/clients'));
    const { message } = (await answer.json()) as { message: string };
    assert.deepEqual(
      [answer.status, message, errors],
      [401, 'there is no login, or its session has ended: log in', []]
    );
    await broker.stop();
  });

  it('ends the session when the app no longer names the person', async () => {
    await using test = await startWithHost(byName);
    const browser = test.server.browser();
    await browser.send('GET', '/session', undefined, { 'x-person': 'root' });
    assert.ok(browser.cookie);
    const { cookie } = browser;
    await browser.send('GET', '/session', undefined, { 'x-person': 'root' });
    assert.equal(browser.cookie, cookie, 'the session goes on');
    assert.equal((await browser.send('GET', '/api/clients')).status, 401, 'a cookie alone is not enough');
    await browser.send('GET', '/session', undefined, { 'x-person': 'root' });
    assert.notEqual(browser.cookie, cookie, 'the former session has ended');
    await browser.send('GET', '/session', undefined, { 'x-person': 'eve' });
    assert.equal((await browser.send('GET', '/session', undefined, { 'x-person': 'eve' })).body.id, 'eve');
  });

  it('lets a person whom the app no longer calls an administrator set no watches of an administrator', async () => {
    await using test = await startWithHost((scope) => scope && { id: 'eve', scope });
    const headers = { 'x-person': 'administrator' };
    const response = await fetch(`http://127.0.0.1:${test.server.port}/live`, { headers });
    const reader = readerOf(response.body as ReadableStream<Uint8Array>);
    const [opened] = await reader.next(1);
    const set = async (scope: string) =>
      (await test.server.call('PUT', `/live/${opened.data.id}`, { watches: {} }, { 'x-person': scope })).status;
    assert.deepEqual([await set('viewer'), await set('administrator')], [404, 200]);
    await reader.cancel();
  });

  it('answers 401 if the function throws, rejects, or returns something else, and reports it', async () => {
    const wrong: unknown[] = [
      () => {
        throw new Error('thrown');
      },
      () => Promise.reject(new Error('rejected')),
      () => ({ id: 'x' }),
      () => ({ id: '', scope: 'viewer' }),
      () => ({ id: 'x', scope: 'root' }),
      () => true
    ];
    await using test = await startWithHost((at) => (wrong[Number(at)] as () => unknown)());
    const browser = test.server.browser();
    for (let at = 0; at < wrong.length; at++)
      assert.equal((await browser.send('GET', '/session', undefined, { 'x-person': `${at}` })).status, 401, `${at}`);
    assert.equal(test.errors.length, wrong.length);
    assert.match(test.errors[2], /must return \{ id, scope \}/);
  });

  it('takes no passwords with a function of the app, but accepts HTTP Basic of a user in the interfaces', async () => {
    await using test = await startWithHost(byName);
    const browser = test.server.browser();
    const answer = await browser.login('ann');
    assert.equal(answer.status, 404);
    assert.match(answer.body.message, /log in to the host app/);
    const authorization = `Basic ${Buffer.from('ann:a password').toString('base64')}`;
    assert.equal((await test.server.call('GET', '/api/clients', undefined, { authorization })).status, 200);
  });
});
