import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type Listener, type ListenOptions, listen } from '../../adapters/net/index.ts';
import { ConnectionRefused } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { StubBroker, turnsUntil } from './stub-broker.ts';

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

/** mulberry32: a small generator that repeats with the same seed. */
function random(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const PROXY_LINE = Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 56789 1883\r\n');
const PROXY_BINARY = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb007107c0000201ddd5075b', 'hex');
const UPGRADE = Buffer.from(
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n'
);
const FRAMES = Buffer.from('828100000000788981000000002188820000000003e8', 'hex');
const CLIENT_HELLO = Buffer.from('16030100c8010000c40303', 'hex');

const CONNECTIONS = 150;

describe(`garbage instead of a protocol (SEED=${seed})`, () => {
  let certificates: Certificates;
  before(() => {
    certificates = makeCertificates();
  });
  after(() => certificates[Symbol.dispose]());

  const kinds: readonly (readonly [string, () => ListenOptions, readonly Buffer[]])[] = [
    ['a PROXY listener', () => ({ port: 0, ...PROXIED }), [PROXY_LINE, PROXY_BINARY]],
    ['a WebSocket listener', () => ({ port: 0, ws: true }), [UPGRADE, Buffer.concat([UPGRADE, FRAMES])]],
    ['a TLS listener', () => ({ port: 0, tls: server() }), [CLIENT_HELLO]],
    [
      'a listener with all of them',
      () => ({ port: 0, tls: server(), ws: true, ...PROXIED }),
      [Buffer.concat([PROXY_BINARY, CLIENT_HELLO]), Buffer.concat([PROXY_LINE, UPGRADE])]
    ]
  ];
  const PROXIED = { proxyProtocol: true, trustedProxies: ['127.0.0.1'] };
  const server = () => ({ cert: certificates.server.cert, key: certificates.server.key, psk: { a: '00' } });

  for (const [at, [name, options, beginnings]] of kinds.entries()) {
    it(`neither ends the process nor leaves a connection in ${name}`, async () => {
      const next = random(seed + at);
      const broker = new StubBroker();
      broker.handle = (stream) => stream.on('error', () => {}).resume();
      const listener = await listen(broker, options());
      for (let connection = 0; connection < CONNECTIONS; connection++) {
        await pester(listener, garble(beginnings, next), next);
      }
      await turnsUntil(() => listener.info().currentConnections === 0);
      const faults = broker.reports.filter(({ error }) => !(error instanceof ConnectionRefused));
      assert.deepEqual(faults, []);
      await broker.stop();
    });
  }
});

/** Builds a valid beginning, truncated or with a changed byte, and random bytes behind it. */
function garble(beginnings: readonly Buffer[], next: () => number): Buffer {
  const whole = beginnings[Math.floor(next() * beginnings.length)];
  const bytes = Buffer.from(whole.subarray(0, next() < 0.5 ? whole.length : Math.floor(next() * whole.length)));
  if (bytes.length > 0 && next() < 0.5) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
  const noise = Buffer.from(Array.from({ length: Math.floor(next() * 200) }, () => Math.floor(next() * 256)));
  return Buffer.concat([bytes, noise]);
}

/** Sends bytes in one or two pieces, and ends or destroys the connection. */
function pester({ port }: Listener, bytes: Buffer, next: () => number): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port as number, '127.0.0.1');
    const cut = Math.floor(next() * bytes.length);
    const leave = next();
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
    socket.write(bytes.subarray(0, cut));
    socket.write(bytes.subarray(cut), () => {
      if (leave < 0.3) socket.resetAndDestroy();
      else if (leave < 0.6) socket.destroy();
      else {
        socket.end();
        setImmediate(() => setImmediate(() => socket.destroy()));
      }
    });
  });
}
