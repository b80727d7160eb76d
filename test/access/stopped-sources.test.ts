import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { acl, type BrokerOptions, createBroker, memoryStore, users } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { inNoTime, timersPassed } from '../support/real-time.ts';
import { connect, granted, startBroker, turns } from '../support/wire.ts';

type Given = Omit<BrokerOptions, 'clock'>;

/** A source that knows one user, and counts how often it is opened and closed. */
function known(username: string, name = username): AuthSource & { opened: number; closed: number } {
  return {
    name,
    opened: 0,
    closed: 0,
    open() {
      this.opened++;
    },
    close() {
      this.closed++;
    },
    authenticate: (request) => (request.username === username ? true : undefined)
  };
}

/** The reason code for a user. */
async function codeFor({ broker }: TestBroker, username: string, password?: string): Promise<number> {
  const client = await rawClient(broker, { connect: false });
  client.send(connect(5, { username, ...(password !== undefined && { password: Buffer.from(password) }) }));
  const { reasonCode } = await client.next('connack');
  client.stream.destroy();
  await turns();
  return reasonCode;
}

/** The sources as `name on` or `name off`. */
const states = ({ broker }: TestBroker) =>
  broker.access.list().map(({ name, isStarted }) => `${name} ${isStarted ? 'on' : 'off'}`);

describe('Rules in options', () => {
  it('keeps the records that were set at run time at the next start', async () => {
    const store = memoryStore();
    const auth = [acl([{ access: 'allow', topic: 'a' }])];
    const rules: unknown[] = [];
    for (const isFirst of [true, false]) {
      await using kit = await createTestBroker({ store, auth });
      const { access } = kit.broker;
      if (isFirst) await access.acl.set({ access: 'deny', action: 'pubsub', topic: 'a' });
      rules.push(access.acl.list('all'));
      const client = await rawClient(kit.broker);
      assert.deepEqual(await granted(client, 1, 'a'), [0x87], 'records come first');
      client.stream.destroy();
    }
    assert.deepEqual(rules[0], rules[1]);
  });
});

describe('broker.access.stop and start', () => {
  it('stops asking a source, and asks it again after the others', async () => {
    const [ann, bob] = [known('ann'), known('bob')];
    await using kit = await createTestBroker({ auth: [ann, bob] });
    const { access } = kit.broker;
    assert.deepEqual(await Promise.all([codeFor(kit, 'ann'), codeFor(kit, 'bob')]), [0, 0]);
    assert.equal(await access.stop('ann'), true);
    assert.equal(await access.stop('ann'), false);
    assert.deepEqual(await Promise.all([codeFor(kit, 'ann'), codeFor(kit, 'bob')]), [0x86, 0]);
    assert.deepEqual(states(kit), ['records on', 'ann off', 'bob on']);
    assert.deepEqual([ann.opened, ann.closed], [1, 1]);
    assert.equal(await access.start('ann'), true);
    assert.equal(await access.start('ann'), false);
    assert.equal(await codeFor(kit, 'ann'), 0);
    assert.deepEqual(states(kit), ['records on', 'bob on', 'ann on']);
    assert.deepEqual([ann.opened, ann.closed], [2, 1]);
  });

  it('applies stop and start in the order of their calls while a source is being opened', async () => {
    const store = memoryStore();
    let isSlow = false;
    let opened = () => undefined as unknown;
    const source = known('ann');
    const auth = [
      {
        ...source,
        async open() {
          source.opened++;
          if (isSlow)
            await new Promise<void>((resolve) => {
              opened = resolve;
            });
        },
        close() {
          source.closed++;
        }
      }
    ];
    {
      await using kit = await createTestBroker({ auth, store });
      const { access } = kit.broker;
      await access.stop('ann');
      isSlow = true;
      const start = access.start('ann');
      await turns();
      const stop = access.stop('ann');
      await turns();
      opened();
      assert.deepEqual(await Promise.all([start, stop]), [true, true]);
      assert.deepEqual(states(kit), ['records on', 'ann off']);
      assert.deepEqual([source.opened, source.closed], [2, 2]);
      assert.equal(await codeFor(kit, 'ann'), 0x86);
    }
    isSlow = false;
    await using kit = await createTestBroker({ auth, store });
    assert.deepEqual(states(kit), ['records on', 'ann off']);
    assert.equal(source.opened, 2, 'it is not opened at the next start');
  });

  it('continues with the next call after one that has failed', async () => {
    let isFailing = false;
    const source = known('ann');
    const open = () => {
      if (isFailing) throw new Error('no server');
    };
    await using kit = await createTestBroker({ auth: [{ ...source, open }] });
    const { access } = kit.broker;
    await access.stop('ann');
    isFailing = true;
    const [failed, stopped] = await Promise.allSettled([access.start('ann'), access.stop('ann')]);
    assert.equal(failed.status, 'rejected');
    assert.deepEqual(stopped, { status: 'fulfilled', value: false });
    await assert.rejects(access.start('unknown'), { code: 'SOURCE_UNKNOWN' });
    isFailing = false;
    assert.equal(await access.start('ann'), true);
  });

  it('refuses unknown clients while the only source of authentication is stopped, unless allowAnonymous is true', async () => {
    for (const [options, expected] of [
      [{}, 0x86],
      [{ allowAnonymous: true }, 0]
    ] as [Given, number][]) {
      await using kit = await createTestBroker({ ...options, auth: [known('ann')] });
      await kit.broker.access.stop('ann');
      assert.equal(await codeFor(kit, 'ann'), expected);
      assert.equal(await codeFor(kit, 'eve'), expected);
    }
  });

  it('refuses clients with a password while the records are stopped', async () => {
    await using kit = await createTestBroker({});
    const { access } = kit.broker;
    await access.usernames.create('ann', 'secret');
    assert.deepEqual([await codeFor(kit, 'ann', 'secret'), await codeFor(kit, 'eve')], [0, 0]);
    await access.stop('records');
    assert.deepEqual([await codeFor(kit, 'ann', 'secret'), await codeFor(kit, 'eve')], [0x86, 0x86]);
    await access.usernames.create('bob', 'secret');
    assert.equal(await codeFor(kit, 'bob', 'secret'), 0x86);
    await access.start('records');
    assert.deepEqual([await codeFor(kit, 'bob', 'secret'), await codeFor(kit, 'ann', 'wrong')], [0, 0x86]);
  });

  it('withdraws the rules of a stopped source, and refuses what no other rule allows', async () => {
    await using broker = await startBroker({ auth: [acl([{ access: 'allow', action: 'subscribe', topic: 'a' }])] });
    const client = await rawClient(broker);
    const codes = async () => [...(await granted(client, 1, 'a')), ...(await granted(client, 2, 'b'))];
    assert.deepEqual(await codes(), [0, 0x87]);
    await broker.access.stop('acl');
    assert.deepEqual(await codes(), [0x87, 0x87]);
    await broker.access.start('acl');
    assert.deepEqual(await codes(), [0, 0x87]);
    client.stream.destroy();
  });

  it('persists stopped sources by name, and does not open them at the next start', async () => {
    const store = memoryStore();
    {
      await using kit = await createTestBroker({
        store,
        auth: [known('ann'), users([{ username: 'bob', password: 'b' }])]
      });
      await kit.broker.access.stop('ann');
      await kit.broker.access.stop('records');
    }
    const ann = known('ann');
    await using kit = await createTestBroker({ store, auth: [ann, users([{ username: 'bob', password: 'b' }])] });
    assert.deepEqual(states(kit), ['records off', 'ann off', 'users on']);
    assert.equal(ann.opened, 0);
    assert.deepEqual([await codeFor(kit, 'ann'), await codeFor(kit, 'bob', 'b')], [0x86, 0x86]);
    await kit.broker.access.start('ann');
    await kit.broker.access.start('records');
    assert.deepEqual([await codeFor(kit, 'ann'), await codeFor(kit, 'bob', 'b')], [0, 0]);
    const late = known('late');
    await kit.broker.access.create(late);
    await kit.broker.access.stop('late');
    await kit.broker.access.delete('late');
    await kit.broker.access.create(late);
    assert.deepEqual(states(kit).at(-1), 'late off', 'also if the app adds it again');
  });

  it('keeps a source stopped if it cannot be opened', async () => {
    const source = known('ann');
    await using kit = await createTestBroker({ auth: [source] });
    await kit.broker.access.stop('ann');
    source.open = () => {
      throw new Error('no file');
    };
    await assert.rejects(kit.broker.access.start('ann'), /no file/);
    assert.deepEqual(states(kit), ['records on', 'ann off']);
    await assert.rejects(kit.broker.access.reload('ann'), { code: 'SOURCE_STOPPED' });
    assert.equal(await codeFor(kit, 'ann'), 0x86);
  });

  it('refuses unknown names with a suggestion, and a source with the name of the records', async () => {
    await using kit = await createTestBroker({ auth: [known('ann')] });
    const { access } = kit.broker;
    await assert.rejects(access.stop('record'), { code: 'SOURCE_UNKNOWN', message: /did you mean "records"/ });
    await assert.rejects(access.start('another'), { code: 'SOURCE_UNKNOWN', message: /records, ann/ });
    await assert.rejects(access.create(known('x', 'records')), { code: 'SOURCE_NAME_IN_USE' });
  });
});

describe('A source of authentication that hangs', () => {
  /** A function that has not resolved before `resolve` is called. */
  function gate() {
    let resolve = (): void => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    return { wait: () => promise, resolve };
  }

  it('delays a stop only for a limited time when it does not close, and the stop reports it', async (t) => {
    const broker = createBroker({
      auth: [known('bob'), { ...known('ann', 'slow'), close: () => new Promise<void>(() => {}) }]
    });
    await broker.start();
    await inNoTime(t, () =>
      assert.rejects(broker.stop(), ({ errors }: AggregateError) => {
        assert.deepEqual(
          errors.map(({ code, message }) => [code, message]),
          [['SOURCE_FAILED', 'the source of authentication "slow" does not close']]
        );
        return true;
      })
    );
    assert.equal(broker.state, 'disconnected');
  });

  it('keeps its time to close when another stop without time begins or the signal of the stop aborts', async () => {
    const closing = gate();
    const broker = createBroker({ auth: [{ ...known('ann'), close: closing.wait }] });
    await broker.start();
    const ending = new AbortController();
    const stopped = broker.stop({ signal: ending.signal });
    await turns();
    const again = broker.stop({ timeoutMs: 0 });
    const refused = assert.rejects(stopped, { message: 'enough' });
    ending.abort(new Error('enough'));
    await timersPassed();
    assert.equal(broker.actor.getSnapshot().matches({ disconnected: 'draining' }), true);
    closing.resolve();
    await refused;
    await again;
  });

  it('does not keep a stop from ending that waited for its turn longer than its time', async () => {
    const closing = gate();
    const source = { ...known('ann'), close: closing.wait };
    const broker = createBroker({ auth: [source] });
    await broker.start();
    const stopped = broker.stop();
    await turns();
    source.open = () => new Promise<void>(() => {});
    const refused = assert.rejects(broker.start(), { code: 'BROKER_NOT_STARTED' });
    const again = broker.stop({ timeoutMs: 0 });
    await timersPassed();
    closing.resolve();
    await Promise.all([stopped, refused, again]);
    source.open = async () => {};
    await broker.start();
    await broker.stop();
  });

  it('stays open when an earlier start whose end did not wait for it has opened it, too', async () => {
    const [first, second] = [gate(), gate()];
    const source = { ...known('ann'), open: first.wait };
    const broker = createBroker({ auth: [source] });
    const ending = new AbortController();
    const refused = assert.rejects(broker.start({ signal: ending.signal }), { message: 'enough' });
    await turns();
    ending.abort(new Error('enough'));
    await refused;
    source.open = second.wait;
    const started = broker.start();
    await turns();
    first.resolve();
    await turns();
    second.resolve();
    await started;
    assert.equal(source.closed, 0);
    await broker.stop();
    assert.equal(source.closed, 1);
  });

  it('does not change a source of the same name that replaces it while it opens', async () => {
    await using kit = await createTestBroker();
    const { access } = kit.broker;
    for (const fails of [false, true]) {
      const opening = gate();
      const added = access.create({
        ...acl([{ access: 'allow', topic: 'a' }]),
        open: async ({ setRules }) => {
          await opening.wait();
          setRules([{ access: 'allow', topic: 'a' }]);
          if (fails) throw new Error('no file');
        }
      });
      const ended = fails ? assert.rejects(added, /no file/) : added;
      await turns();
      await access.delete('acl');
      await access.create(acl([{ access: 'deny', topic: 'a' }]));
      opening.resolve();
      await ended;
      assert.deepEqual(states(kit), ['records on', 'acl on']);
      const client = await rawClient(kit.broker);
      assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
      client.stream.destroy();
      await access.delete('acl');
    }
  });

  it('does not keep a start from being aborted or stopped when it does not open, and is closed when it has opened later', async () => {
    for (const way of ['abort', 'stop'] as const) {
      const opening = gate();
      const slow = { ...known('ann'), open: opening.wait };
      const next = known('bob');
      const broker = createBroker({ auth: [slow, next] });
      const ending = new AbortController();
      const started = broker.start({ signal: ending.signal });
      const refused = assert.rejects(started, way === 'abort' ? { message: 'enough' } : { code: 'BROKER_NOT_STARTED' });
      await turns();
      if (way === 'abort') ending.abort(new Error('enough'));
      else await broker.stop({ timeoutMs: 0 });
      await refused;
      opening.resolve();
      await turns();
      assert.deepEqual([slow.closed, next.opened], [1, 0]);
      slow.open = async () => {};
      await broker.start();
      await broker.stop();
      assert.deepEqual([slow.closed, next.opened, next.closed], [2, 1, 1]);
    }
  });
});
