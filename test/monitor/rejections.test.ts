import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BrokerEvents, ConnectionRefused, type Logger, users } from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { refusedConnect } from '../support/wire.ts';

type Rejected = BrokerEvents['client.rejected'];

/** A broker whose lines of the level `warn`, and rejected clients, are collected. */
async function start(options: TestBrokerOptions = {}) {
  const warnings: string[] = [];
  const rejected: Rejected[] = [];
  const ignore = () => {};
  const warn = (message: string) => warnings.push(message);
  const logger = { error: ignore, warn, info: ignore, debug: ignore } as Logger;
  const kit = await createTestBroker({ logger, leakCheck: false, ...options });
  kit.broker.on('client.rejected', (event) => rejected.push(event));
  return { kit, broker: kit.broker, warnings, rejected, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

/** Connect a client, and let it be disconnected for a packet that is larger than the broker accepts. */
async function cutOff(broker: Awaited<ReturnType<typeof start>>['broker'], clientId = 'z2m'): Promise<void> {
  const client = await rawClient(broker, { clientId, meta: { remoteAddress: '192.0.2.7' } });
  client.stream.write(Buffer.from('30ffffff7f', 'hex'));
  await client.closed();
}

const alarmsOf = ({ broker }: Awaited<ReturnType<typeof start>>) =>
  broker.alarms.present().filter(({ id }) => id === 'client_rejected');

describe('A client that is rejected', () => {
  it('logs one line at the level warn for each reason in a minute when the packets of a client are too large', async () => {
    await using it = await start();
    for (let n = 0; n < 4; n++) await cutOff(it.broker);
    assert.equal(it.warnings.length, 1);
    assert.match(it.warnings[0], /client rejected: .*too large|client rejected: .*maxPacketSize/i);
    const [{ client, address, reason, reasonCode }] = it.rejected;
    assert.deepEqual([client?.clientId, address, reason, reasonCode], ['z2m', '192.0.2.7', 'packet_too_large', 0x95]);
    await cutOff(it.broker, 'another');
    assert.equal(it.warnings.length, 2);
    await it.kit.clock.advance('61s');
    await cutOff(it.broker);
    assert.equal(it.warnings.length, 3);
  });

  it('reports a client by its address if its first packet is not MQTT', async () => {
    await using it = await start();
    const meta = { remoteAddress: '192.0.2.9' };
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x00\x00']) {
      const client = await rawClient(it.broker, { connect: false, meta });
      client.stream.write(Buffer.from(bytes, 'latin1'));
      await client.closed();
    }
    assert.deepEqual(
      it.rejected.map(({ client, address }) => [client?.clientId, address]),
      Array(2).fill(['', '192.0.2.9'])
    );
    assert.ok(it.warnings.length > 0);
  });

  it('reports a client by its address if a listener has closed its connection before', async () => {
    await using it = await start();
    for (let n = 0; n < 5; n++)
      it.broker.failed(new ConnectionRefused('tls_failed', 'the TLS handshake has failed', '192.0.2.8'), 'accepting');
    assert.deepEqual(it.warnings.slice(0, 1), ['client rejected: the TLS handshake has failed']);
    const [{ client, address, reason }] = it.rejected;
    assert.deepEqual([client, address, reason], [undefined, '192.0.2.8', 'tls_failed']);
    assert.match(alarmsOf(it)[0].summary, /a client at 192\.0\.2\.8 \(tls_failed: the TLS handshake has failed\)/);
  });

  it('does not report a client that disconnects, is disconnected by the app, is taken over, or loses its connection', async () => {
    await using it = await start();
    const one = await it.kit.connect({ clientId: 'a' });
    await one.disconnect();
    await it.kit.connect({ clientId: 'b' });
    it.broker.sessions.get('b').kick();
    await rawClient(it.broker, { clientId: 'c' });
    const last = await rawClient(it.broker, { clientId: 'c' });
    last.stream.destroy();
    await it.kit.clock.settle();
    assert.deepEqual([it.rejected, it.warnings], [[], []]);
  });
});

describe('The alarm client_rejected', () => {
  it('raises client_rejected when a client is rejected five times within a minute, and not when that takes longer', async () => {
    await using it = await start();
    for (let n = 0; n < 10; n++) {
      await cutOff(it.broker, 'slow');
      await it.kit.clock.advance('16s');
    }
    assert.deepEqual(alarmsOf(it), []);
    for (let n = 0; n < 5; n++) {
      assert.deepEqual(alarmsOf(it), [], `after ${n}`);
      await cutOff(it.broker);
      await it.kit.clock.advance('14s');
    }
    const [{ severity, summary }] = alarmsOf(it);
    assert.equal(severity, 'warning');
    assert.match(summary, /client "z2m" \(packet_too_large: /);
    assert.ok(!summary.includes('slow'));
  });

  it('clears client_rejected when no client was rejected so often for five minutes', async () => {
    await using it = await start();
    const cleared: string[] = [];
    it.broker.on('alarm.cleared', ({ alarm }) => cleared.push(alarm.id));
    for (let n = 0; n < 5; n++) await cutOff(it.broker);
    await it.kit.clock.advance('4m');
    for (let n = 0; n < 5; n++) await cutOff(it.broker);
    await it.kit.clock.advance('4m');
    assert.equal(alarmsOf(it).length, 1);
    await it.kit.clock.advance('61s');
    assert.deepEqual([alarmsOf(it), cleared], [[], ['client_rejected']]);
    for (let n = 0; n < 5; n++) await cutOff(it.broker);
    assert.equal(alarmsOf(it).length, 1, 'again');
  });

  it('names five of the clients and counts the others, and changes at most once a minute', async () => {
    await using it = await start();
    let raised = 0;
    it.broker.on('alarm.raised', () => raised++);
    const peer = (n: number) => new ConnectionRefused('tls_failed', 'failed', `192.0.2.${n}`);
    for (let n = 0; n < 8; n++) for (let time = 0; time < 5; time++) it.broker.failed(peer(n), 'accepting');
    assert.equal(raised, 1);
    await it.kit.clock.advance('61s');
    for (let time = 0; time < 5; time++) it.broker.failed(peer(0), 'accepting');
    assert.equal(raised, 2);
    const [{ summary }] = alarmsOf(it);
    assert.match(summary, /192\.0\.2\.0 .* and 3 more/);
  });

  it('limits its memory, its lines and its events under a flood of clients with different names', async () => {
    await using it = await start();
    let raised = 0;
    it.broker.on('alarm.raised', () => raised++);
    for (let n = 0; n < 20_000; n++)
      it.broker.failed(new ConnectionRefused('tls_failed', 'failed', `2001:db8::${n.toString(16)}`), 'accepting');
    assert.ok(it.warnings.length <= 1_000, `${it.warnings.length} lines`);
    assert.equal(raised, 0);
    // the repeatedly rejected client is found among the others
    for (let n = 0; n < 5; n++) {
      it.broker.failed(new ConnectionRefused('tls_failed', 'failed', '192.0.2.1'), 'accepting');
      for (let m = 0; m < 900; m++)
        it.broker.failed(
          new ConnectionRefused('tls_failed', 'failed', `2001:db8:${n}::${m.toString(16)}`),
          'accepting'
        );
    }
    assert.match(alarmsOf(it)[0].summary, /192\.0\.2\.1/);
  });
});

describe('The reason of a refused login', () => {
  const why = async (options: TestBrokerOptions, connecting: Parameters<typeof refusedConnect>[1]) => {
    await using it = await start(options);
    const connacks: (string | undefined)[] = [];
    it.broker.on('client.connack', (event) => connacks.push(event.why));
    const traced: unknown[] = [];
    it.broker.traces.start({ clientId: connecting?.clientId ?? '', to: (line) => void traced.push(line) });
    const { properties } = await refusedConnect(it.broker, connecting);
    const [{ why: known }] = it.rejected;
    assert.deepEqual(connacks, [known], 'client.connack');
    const lines = traced.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
    const isTraced = (text: string) => JSON.parse(text).event === 'client.rejected' && JSON.parse(text).why === known;
    assert.ok(lines.some(isTraced), `the trace: ${lines}`);
    assert.equal(it.warnings[0], `client rejected: ${known}`);
    assert.ok(!`${it.warnings}${lines}`.includes('top secret'), 'the password is shown');
    assert.equal(properties?.reasonString, undefined, 'the client gets no reason');
    return known;
  };
  const ann = { clientId: 'c', username: 'ann', password: Buffer.from('top secret') };

  for (const [name, options, connecting, expected] of [
    [
      'a wrong password',
      { auth: [users([{ username: 'ann', password: 'x' }])] },
      ann,
      'records: the password is wrong'
    ],
    [
      'a missing password',
      { auth: [users([{ username: 'ann', password: 'x' }])] },
      { clientId: 'c', username: 'ann' },
      'records: the password is missing'
    ],
    [
      'an unknown user',
      { auth: [users([{ username: 'bob', password: 'x' }])] },
      ann,
      'no hook and no source of authentication knows the client (option allowAnonymous)'
    ],
    ['a hook', { hooks: { authenticate: () => false } }, ann, 'a hook refuses the client'],
    ['a hook with a reason', { hooks: { authenticate: () => ({ allow: false, why: 'paused' }) } }, ann, 'paused'],
    ['a source', { auth: [{ name: 'mine', authenticate: () => false }] }, ann, 'the source mine refuses the client'],
    [
      'a source with a reason',
      { auth: [{ name: 'mine', authenticate: async () => ({ allow: false, why: 'not paid' }) }] },
      ann,
      'source mine: not paid'
    ],
    ['no credentials', { allowAnonymous: false }, { clientId: 'c' }, undefined]
  ] as const)
    it(`reports the reason to the operator, and not to the client: ${name}`, async () => {
      const known = await why(options as TestBrokerOptions, connecting);
      if (expected === undefined) assert.match(known, /allowAnonymous/);
      else assert.equal(known, expected);
    });
});
