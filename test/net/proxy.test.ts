import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { type ListenOptions, listen, tcp, unix } from '../../adapters/net/index.ts';
import { type ProxyHeader, parseProxyHeader } from '../../adapters/net/proxy-header.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { closed, readBytes, StubBroker, turnsUntil } from './stub-broker.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FROM4 = Buffer.from([203, 0, 113, 7, 192, 0, 2, 1, 0xdd, 0xd5, 0x07, 0x5b]); // 203.0.113.7:56789 -> 192.0.2.1:1883

function binary(command: number, family: number, body: Buffer, length = body.length): Buffer {
  return Buffer.concat([SIGNATURE, Buffer.from([0x20 | command, family, length >> 8, length & 255]), body]);
}

function tlv(type: number, value: Buffer | string): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Buffer.from([type, bytes.length >> 8, bytes.length & 255]), bytes]);
}

function sslTlv(client: number, verify: number, commonName: string): Buffer {
  return tlv(
    0x20,
    Buffer.concat([Buffer.from([client, 0, 0, 0, verify]), tlv(0x21, 'TLSv1.3'), tlv(0x22, commonName)])
  );
}

function parse(header: Buffer | string): ProxyHeader {
  const result = parseProxyHeader(Buffer.from(header as string));
  assert.ok(typeof result === 'object', `the header is ${result}`);
  return result;
}

describe('the PROXY header', () => {
  const good: readonly (readonly [string, Buffer, ProxyHeader['source'], ProxyHeader['destination']])[] = [
    [
      'version 1 over IPv4',
      Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 56789 1883\r\n'),
      { address: '203.0.113.7', port: 56789 },
      { address: '192.0.2.1', port: 1883 }
    ],
    [
      'version 1 over IPv6, of maximum length',
      Buffer.from('PROXY TCP6 ffff:f:f:f:f:f:f:ffff ffff:f:f:f:f:f:f:fffe 65535 0\r\n'),
      { address: 'ffff:f:f:f:f:f:f:ffff', port: 65535 },
      { address: 'ffff:f:f:f:f:f:f:fffe', port: 0 }
    ],
    ['version 1, unknown', Buffer.from('PROXY UNKNOWN\r\n'), undefined, undefined],
    ['version 1, unknown with a tail', Buffer.from('PROXY UNKNOWN ffff::1 what ever 1\r\n'), undefined, undefined],
    [
      'version 2 over IPv4',
      binary(1, 0x11, FROM4),
      { address: '203.0.113.7', port: 56789 },
      { address: '192.0.2.1', port: 1883 }
    ],
    [
      'version 2 over IPv6',
      binary(
        1,
        0x21,
        Buffer.concat([
          Buffer.from('20010db8000000000000000000000001fe80000000000000000000000000000f', 'hex'),
          FROM4.subarray(8)
        ])
      ),
      { address: '2001:db8::1', port: 56789 },
      { address: 'fe80::f', port: 1883 }
    ],
    ['version 2 over a Unix socket', binary(1, 0x31, Buffer.alloc(216)), undefined, undefined],
    ['version 2, family unspecified', binary(1, 0x00, Buffer.alloc(0)), undefined, undefined],
    [
      'version 2 of the proxy itself (LOCAL), whose addresses are ignored',
      binary(0, 0x11, FROM4),
      undefined,
      undefined
    ],
    [
      'version 2 with TLVs that are not used',
      binary(1, 0x11, Buffer.concat([FROM4, tlv(0x05, 'id'), tlv(0x04, ''), tlv(0x02, 'host'), tlv(0xee, 'x')])),
      { address: '203.0.113.7', port: 56789 },
      { address: '192.0.2.1', port: 1883 }
    ]
  ];

  for (const [name, header, source, destination] of good) {
    it(`parses ${name}, and asks for more bytes after every incomplete prefix`, () => {
      for (let length = 0; length < header.length; length++)
        assert.equal(parseProxyHeader(header.subarray(0, length)), 'more', `at ${length}`);
      const expected = { length: header.length, source, destination, commonName: undefined };
      assert.deepEqual(parse(header), expected);
      assert.deepEqual(
        parse(Buffer.concat([header, Buffer.from('\x10\x0c')])),
        expected,
        'what follows is not its own'
      );
    });
  }

  const bad: readonly (readonly [string, Buffer | string])[] = [
    ['MQTT', '\x10\x0c\x00\x04MQTT'],
    ['another word', 'POST '],
    ['a lower-case word', 'proxy TCP4 '],
    ['an unknown family', 'PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n'],
    ['a missing port', 'PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n'],
    ['an extra word after the ports', 'PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n'],
    ['two spaces', 'PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n'],
    ['an IPv6 address as IPv4', 'PROXY TCP4 ::1 ::1 1 2\r\n'],
    ['an address with a leading zero', 'PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n'],
    ['a port with a leading zero', 'PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n'],
    ['a port past 65535', 'PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n'],
    ['a line without end', `PROXY UNKNOWN ${'x'.repeat(100)}`],
    ['a false signature', Buffer.concat([SIGNATURE.subarray(0, 11), Buffer.from('!')])],
    ['version 3', Buffer.concat([SIGNATURE, Buffer.from([0x31])])],
    ['an unknown command', Buffer.concat([SIGNATURE, Buffer.from([0x22])])],
    ['an unknown address family', binary(1, 0x41, Buffer.alloc(300))],
    ['datagrams', binary(1, 0x12, FROM4)],
    ['truncated addresses', binary(1, 0x11, FROM4.subarray(0, 11))],
    ['an excessive length, at once', binary(1, 0x11, Buffer.alloc(0), 65_535)],
    ['a record longer than the header', binary(1, 0x11, Buffer.concat([FROM4, Buffer.from([5, 0, 9, 1])]))],
    ['a record without length', binary(1, 0x11, Buffer.concat([FROM4, Buffer.from([5, 0])]))],
    ['a truncated TLS record', binary(1, 0x11, Buffer.concat([FROM4, tlv(0x20, 'abcd')]))],
    [
      'a TLS record with a broken part',
      binary(1, 0x11, Buffer.concat([FROM4, tlv(0x20, Buffer.from([2, 0, 0, 0, 0, 0x22, 0, 9]))]))
    ]
  ];

  for (const [name, header] of bad) {
    it(`rejects a header with ${name}`, () =>
      assert.equal(parseProxyHeader(Buffer.from(header as string, 'latin1')), 'malformed'));
  }

  it('contains the common name of a certificate only if the proxy has verified it', () => {
    const commonName = (client: number, verify: number) =>
      parse(binary(1, 0x11, Buffer.concat([FROM4, sslTlv(client, verify, 'device-1')]))).commonName;
    assert.equal(commonName(0x07, 0), 'device-1');
    assert.equal(commonName(0x05, 0), 'device-1');
    assert.equal(commonName(0x01, 0), undefined, 'TLS without a certificate');
    assert.equal(commonName(0x07, 1), undefined, 'a certificate that did not verify');
  });
});

describe('a listener behind a proxy', () => {
  const LINE = 'PROXY TCP4 203.0.113.7 192.0.2.1 56789 1883\r\n';
  const behind = { port: 0, proxyProtocol: true, trustedProxies: ['127.0.0.1', '10.0.0.0/8'] };
  let certificates: Certificates;
  let broker: StubBroker;
  const clients: Socket[] = [];

  before(() => {
    certificates = makeCertificates();
  });
  after(() => certificates[Symbol.dispose]());
  beforeEach(() => {
    broker = new StubBroker();
  });
  afterEach(async () => {
    for (const socket of clients.splice(0)) socket.destroy();
    await broker.stop();
  });

  async function dial(options: ListenOptions) {
    const listener = await listen(broker, options);
    const { port, path } = listener.address as { port: number; path?: string };
    const socket = path === undefined ? connect(port, '127.0.0.1') : connect(path);
    socket.on('error', () => {});
    socket.setNoDelay(true);
    clients.push(socket);
    await once(socket, 'connect');
    return { listener, socket };
  }

  it('takes the addresses from the header, and passes on the bytes behind it', async () => {
    const { socket } = await dial(behind);
    socket.write(`${LINE}first`);
    const { stream, meta } = await broker.next();
    assert.equal((await readBytes(stream, 5)).toString(), 'first');
    const { remoteAddress, remotePort, localAddress, localPort } = meta;
    assert.deepEqual(
      { remoteAddress, remotePort, localAddress, localPort },
      { remoteAddress: '203.0.113.7', remotePort: 56789, localAddress: '192.0.2.1', localPort: 1883 }
    );
    socket.write('second');
    assert.equal((await readBytes(stream, 6)).toString(), 'second');
  });

  it('passes the bytes to a broker that listens for data at once', async () => {
    const { socket } = await dial(behind);
    const heard: Buffer[] = [];
    const handled = new Promise<void>((resolve) => {
      broker.handle = (stream) => {
        stream.on('data', (bytes: Buffer) => {
          heard.push(bytes);
          if (Buffer.concat(heard).toString() === 'onetwo') resolve();
        });
        socket.write('two');
      };
    });
    socket.write(`${LINE}one`);
    await handled;
  });

  for (const [name, header] of [
    ['1', Buffer.from(LINE)],
    ['2', binary(1, 0x11, FROM4)]
  ] as const) {
    it(`accepts a header of version ${name} that arrives byte by byte`, async () => {
      const { socket } = await dial(behind);
      for (const byte of Buffer.concat([header, Buffer.from('x')])) {
        await new Promise<void>((resolve) => socket.write(Buffer.from([byte]), () => resolve()));
        await new Promise(setImmediate);
      }
      const { stream, meta } = await broker.next();
      assert.equal((await readBytes(stream, 1)).toString(), 'x');
      assert.equal(meta.remoteAddress, '203.0.113.7');
    });
  }

  it('keeps the addresses of the connection if the proxy connects on its own behalf', async () => {
    const { socket, listener } = await dial(behind);
    socket.write(binary(0, 0x00, Buffer.alloc(0)));
    const { meta } = await broker.next();
    assert.deepEqual(
      [meta.remoteAddress, meta.remotePort, meta.localPort],
      ['127.0.0.1', socket.localPort, listener.port]
    );
  });

  it('closes a connection from an untrusted address, whatever it sends', async () => {
    const { socket, listener } = await dial({ ...behind, trustedProxies: ['10.0.0.0/8', '::1'] });
    await closed(socket);
    assert.deepEqual(listener.info().shutdownCount, { proxy_untrusted: 1 });
    assert.deepEqual(broker.taken, []);
  });

  it('recognizes a trusted IPv4 address on a dual-stack socket', async () => {
    const { socket } = await dial({ ...behind, host: '::' });
    socket.write(LINE);
    assert.equal((await broker.next()).meta.remoteAddress, '203.0.113.7');
  });

  it('closes a connection without a header and with an incomplete one', async () => {
    const { socket, listener } = await dial(behind);
    socket.write('\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00');
    await closed(socket);
    const half = connect(listener.port as number, '127.0.0.1');
    half.end('PROXY TCP4');
    await closed(half);
    await turnsUntil(() => listener.info().shutdownCount.proxy_malformed === 2);
    assert.deepEqual(broker.taken, []);
  });

  it('closes a connection without a header in time', async () => {
    const { socket, listener } = await dial({ ...behind, handshakeTimeout: 30 });
    await closed(socket);
    assert.deepEqual(listener.info().shutdownCount, { handshake_timeout: 1 });
    assert.deepEqual(broker.taken, []);
  });

  it('takes the user name from the certificate that the proxy has verified', async () => {
    const options = { ...behind, usernameFrom: 'cn' } as const;
    const { socket, listener } = await dial(options);
    socket.write(binary(1, 0x11, Buffer.concat([FROM4, sslTlv(0x07, 0, 'device-1')])));
    const { meta } = await broker.next();
    assert.equal(meta.username, 'device-1');
    assert.deepEqual(meta.certificate, { commonName: 'device-1' });
    const nameless = connect(listener.port as number, '127.0.0.1');
    nameless.write(binary(1, 0x11, FROM4));
    await closed(nameless);
    assert.deepEqual(listener.info().shutdownCount, { no_username: 1 });
  });

  for (const [name, split] of [
    ['in the same segment as', false],
    ['before', true]
  ] as const) {
    it(`reads the unencrypted header, ${name} the TLS handshake`, async () => {
      const { server, ca } = certificates;
      const { socket } = await dial({ ...behind, tls: { cert: server.cert, key: server.key } });
      if (split) await new Promise<void>((resolve) => socket.write(LINE, () => resolve()));
      else {
        socket.cork();
        socket.write(LINE);
      }
      const client = connectTls({ socket, ca: ca.cert, servername: 'localhost' });
      clients.push(client);
      process.nextTick(() => socket.uncork());
      client.write('secret');
      const { stream, meta } = await broker.next();
      assert.equal((await readBytes(stream, 6)).toString(), 'secret');
      assert.deepEqual([meta.transport, meta.remoteAddress], ['tls', '203.0.113.7']);
    });

    it(`reads the header ${name} the WebSocket upgrade`, async () => {
      const { socket } = await dial({ ...behind, ws: true });
      const upgrade =
        'GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n';
      const frame = Buffer.from([0x82, 0x81, 0, 0, 0, 0, 0x78]);
      if (split) {
        await new Promise<void>((resolve) => socket.write(LINE, () => resolve()));
        await new Promise(setImmediate);
        socket.write(upgrade);
      } else socket.write(LINE + upgrade);
      socket.write(frame);
      const { stream, meta } = await broker.next();
      assert.equal((await readBytes(stream, 1)).toString(), 'x');
      assert.deepEqual([meta.transport, meta.remoteAddress], ['ws', '203.0.113.7']);
      assert.match((await readBytes(socket, 12)).toString(), /HTTP\/1\.1 101/);
    });
  }

  it('trusts every peer that may open a Unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'listener-'));
    const { socket, listener } = await dial({ path: join(directory, 'x.sock'), proxyProtocol: true });
    socket.write(LINE);
    assert.equal((await broker.next()).meta.remoteAddress, '203.0.113.7');
    await listener.close();
    rmSync(directory, { recursive: true });
  });

  it('requires option trustedProxies', () => {
    assert.throws(() => tcp({ port: 0, proxyProtocol: true }), { code: 'OPTION_MISSING', field: 'trustedProxies' });
    for (const source of ['10.0.0.0/33', '10.0.0.0/8/8', 'proxy.example', '::1/129', '10.0.0.0/']) {
      assert.throws(() => tcp({ ...behind, trustedProxies: [source] }), { code: 'OPTION_INVALID' }, source);
    }
    unix({ path: '/x', proxyProtocol: true });
  });
});
