import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import mqtt from 'mqtt';
import { WebSocket } from 'ws';
import { managementApi } from '../../adapters/management/index.ts';
import { attachWebSocket, listen, upgradeHandler, ws } from '../../adapters/net/index.ts';
import { type ProxyHeaderName, readProxies } from '../../adapters/upgrades/index.ts';
import { type Broker, createBroker, systemClock } from '../../lib/index.ts';

const ADDRESSES: readonly [header: ProxyHeaderName, value: string, address: string, why: string][] = [
  ['x-forwarded-for', '198.51.100.1', '198.51.100.1', 'the only address'],
  ['x-forwarded-for', '1.1.1.1, 198.51.100.1', '198.51.100.1', 'the last one, not what the client has written'],
  ['x-forwarded-for', '198.51.100.1, 10.0.0.7, fd00::1', '198.51.100.1', 'the last one before trusted proxies'],
  ['x-forwarded-for', '10.0.0.8, 10.0.0.7', '10.0.0.8', 'the first one, if all are trusted'],
  ['x-forwarded-for', '198.51.100.1:4711', '198.51.100.1', 'an address with a port'],
  ['x-forwarded-for', '[2001:db8::1]:4711', '2001:db8::1', 'IPv6 with a port'],
  ['x-forwarded-for', '2001:db8::1', '2001:db8::1', 'IPv6'],
  ['x-forwarded-for', '::ffff:198.51.100.1', '198.51.100.1', 'IPv4 as IPv6'],
  ['x-forwarded-for', '198.51.100.1, , ', '198.51.100.1', 'empty entries do not count'],
  ['x-forwarded-for', 'evil, 198.51.100.1', '198.51.100.1', 'what is left of the client does not count'],
  ['x-forwarded-for', 'unknown', '10.0.0.1', 'the proxy that hides the address'],
  ['x-forwarded-for', '198.51.100.1, nonsense', '10.0.0.1', 'the proxy that sends nonsense'],
  ['x-forwarded-for', '198.51.100.1, nonsense, 10.0.0.7', '10.0.0.7', 'the last trusted proxy'],
  ['x-forwarded-for', '10.0.0.0/8', '10.0.0.1', 'a network is not an address'],
  ['x-forwarded-for', '', '10.0.0.1', 'nothing'],
  ['forwarded', 'for=198.51.100.1', '198.51.100.1', 'the only element'],
  ['forwarded', 'proto=https;For="198.51.100.1:4711";by=10.0.0.1', '198.51.100.1', 'a quoted value among others'],
  ['forwarded', 'for="[2001:db8::1]:4711"', '2001:db8::1', 'quoted IPv6 with a port'],
  ['forwarded', 'for="[2001:db8::1]" ; proto=http', '2001:db8::1', 'blanks'],
  ['forwarded', 'for=1.1.1.1, for=198.51.100.1, for="[fd00::7]"', '198.51.100.1', 'past trusted proxies'],
  ['forwarded', 'for="a, for=1.1.1.1", for=198.51.100.1', '198.51.100.1', 'commas in quotes'],
  ['forwarded', 'for="1.1.1.1, for=198.51.100.1', '198.51.100.1', 'a quote that the client left open'],
  ['forwarded', 'for=x", for="[2001:db8::1]:1"', '2001:db8::1', 'a quote of the client before a quoted element'],
  ['forwarded', 'for="198.51.100.\\1"', '198.51.100.1', 'an escaped character'],
  ['forwarded', 'for=unknown', '10.0.0.1', 'unknown'],
  ['forwarded', 'for=1.1.1.1, for=_hidden', '10.0.0.1', 'an obfuscated identifier'],
  ['forwarded', 'for="_gazonk:_port"', '10.0.0.1', 'an obfuscated identifier with a port'],
  ['forwarded', 'for=1.1.1.1, proto=https', '10.0.0.1', 'an element without an address'],
  ['forwarded', 'for=1.1.1.1;for=2.2.2.2', '10.0.0.1', 'two addresses in an element'],
  ['forwarded', '198.51.100.1', '10.0.0.1', 'an element that is not a pair']
];

describe('the address of a client behind trusted proxies', () => {
  const proxies = readProxies(['10.0.0.0/8', 'fd00::/8'], 'trustedProxies');
  for (const [header, value, address, why] of ADDRESSES)
    it(`reads ${address} from ${header} "${value}": ${why}`, () => {
      const read: string[] = [];
      const given = (name: string) => {
        read.push(name);
        return value;
      };
      assert.equal(proxies.with(header).clientAddress('10.0.0.1', given), address);
      assert.deepEqual(read, [header], 'the other header is not read');
    });

  it('takes the address of the connection, if the peer is not trusted', () => {
    const given = () => assert.fail('the header is not read');
    assert.equal(proxies.clientAddress('192.0.2.9', given), '192.0.2.9');
    assert.equal(proxies.clientAddress('::ffff:192.0.2.9', given), '192.0.2.9');
    assert.equal(proxies.clientAddress(undefined, given), undefined);
    assert.equal(readProxies([], 'trustedProxies').clientAddress('10.0.0.1', given), '10.0.0.1');
  });

  it('reads several lines of the header, and headers behind a Unix socket', () => {
    const unix = readProxies(['unix', '10.0.0.1'], 'trustedProxies');
    assert.equal(
      unix.clientAddress(undefined, () => ['1.1.1.1', '198.51.100.1, 10.0.0.1']),
      '198.51.100.1'
    );
  });

  it('never throws, and reports what is not an address once a minute', () => {
    const strict = readProxies('10.0.0.1', 'trustedProxies').with('forwarded');
    const reported: string[] = [];
    strict.reportTo({ clock: systemClock, failed: (error) => reported.push(String(error)) });
    const parts = ['for=', '"', '\\', ',', ';', '=', '[', ']', '1.1.1.1', ' ', 'for="', '\u{e9}', '_', ':'];
    let seed = 1;
    const next = () => (seed = (seed * 48_271) % 2_147_483_647);
    for (let i = 0; i < 5_000; i++) {
      const value = Array.from({ length: next() % 12 }, () => parts[next() % parts.length]).join('');
      assert.match(strict.clientAddress('10.0.0.1', () => value) as string, /^(10\.0\.0\.1|1\.1\.1\.1)$/, value);
    }
    assert.equal(reported.length, 1);
    assert.match(reported[0], /the proxy 10\.0\.0\.1 sent .* in the header forwarded, which is not an IP address/);
  });

  it('refuses options that are not addresses, or another header', () => {
    const broker = createBroker();
    for (const options of [
      { trustedProxies: ['proxy.example'] },
      { trustedProxies: '10.0.0.0/33' },
      { proxyHeader: 'x-real-ip' }
    ])
      for (const read of [
        () => ws({ port: 0, ...options } as never),
        () => upgradeHandler(broker, options as never),
        () => managementApi(broker, options as never)
      ])
        assert.throws(read, { code: 'OPTION_INVALID' });
  });
});

describe('a WebSocket listener with trustedProxies', () => {
  /** The address of a client that connects with these headers. */
  async function addressOf(broker: Broker, url: string, headers: Record<string, string>): Promise<unknown> {
    const connected = broker.nextEvent('client.connected');
    const client = await mqtt.connectAsync(url, { wsOptions: { headers }, reconnectPeriod: 0, clientId: 'c' });
    const { remoteAddress, remotePort } = (await connected).client.transportInfo;
    await client.endAsync();
    return [remoteAddress, remotePort === undefined];
  }

  it('gives the client the address of the chosen header, and ignores the other one', async () => {
    await using broker = createBroker();
    const place = { port: 0, host: '127.0.0.1' };
    const common = listen(broker, ws({ ...place, trustedProxies: '127.0.0.1' }));
    const standard = listen(broker, ws({ ...place, trustedProxies: ['127.0.0.1'], proxyHeader: 'forwarded' }));
    const without = listen(broker, ws(place));
    const http = createServer().listen(0, '127.0.0.1');
    attachWebSocket(broker, http, { trustedProxies: ['127.0.0.0/8', '::1'] });
    await Promise.all([once(http, 'listening'), broker.start()]);
    const headers = { 'x-forwarded-for': '1.1.1.1, 198.51.100.1', forwarded: 'for=1.1.1.1, for=198.51.100.2' };
    const attached = (http.address() as AddressInfo).port;
    for (const [port, expected] of [
      [common.port, ['198.51.100.1', true]],
      [standard.port, ['198.51.100.2', true]],
      [without.port, ['127.0.0.1', false]],
      [attached, ['198.51.100.1', true]]
    ])
      assert.deepEqual(await addressOf(broker, `ws://127.0.0.1:${port}/mqtt`, headers), expected);
    http.close();
  });

  it('bans and refuses by this address, and names it in the error of a refused upgrade', async () => {
    await using broker = createBroker();
    const listener = listen(broker, ws({ port: 0, host: '127.0.0.1', trustedProxies: '127.0.0.1' }));
    await broker.start();
    await broker.access.banned.create({ kind: 'address', who: '198.51.100.1' } as never);
    const url = `ws://127.0.0.1:${listener.port}/mqtt`;
    const options = (address: string) => ({
      wsOptions: { headers: { 'x-forwarded-for': address } },
      reconnectPeriod: 0
    });
    await assert.rejects(mqtt.connectAsync(url, options('198.51.100.1'), false), /Connection refused/);
    await (await mqtt.connectAsync(url, options('198.51.100.2'))).endAsync();
    const failed = broker.nextEvent('error');
    const headers = { 'x-forwarded-for': '198.51.100.3', origin: 'https://evil.example' };
    const socket = new WebSocket(url, ['mqtt'], { headers });
    socket.on('error', () => {});
    const { error } = await failed;
    assert.equal((error as Error & { address?: string }).address, '198.51.100.3');
  });

  it('ignores HTTP headers with proxyProtocol, whose list may contain clients', async () => {
    await using broker = createBroker();
    const where = { port: 0, host: '127.0.0.1', proxyProtocol: true, trustedProxies: ['127.0.0.1', '10.0.0.0/8'] };
    const listener = listen(broker, ws(where));
    await broker.start();
    const connected = broker.nextEvent('client.connected');
    const relay = createTcpServer((socket) => {
      const onward = connect(listener.port as number, '127.0.0.1');
      onward.write('PROXY TCP4 10.0.0.9 10.0.0.1 1234 80\r\n');
      socket.pipe(onward).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const url = `ws://127.0.0.1:${(relay.address() as AddressInfo).port}/mqtt`;
    const wsOptions = { headers: { 'x-forwarded-for': '198.51.100.1' } };
    const client = await mqtt.connectAsync(url, { wsOptions, reconnectPeriod: 0 });
    assert.equal((await connected).client.transportInfo.remoteAddress, '10.0.0.9');
    await client.endAsync();
    relay.close();
  });
});

const NGINX = '/usr/sbin/nginx';
const skip = spawnSync(NGINX, ['-v']).status === 0 ? false : 'nginx is not installed (.ci/packages)';
/** Another address of this machine, from which the clients connect. */
const CLIENT = '127.0.0.2';
const FORGED = { 'x-forwarded-for': '192.0.2.66', forwarded: 'for="192.0.2.66, for="' };

describe('the address of a client behind nginx, which sends forged headers on', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-address-'));
  const http = createServer();
  const broker = createBroker();
  let nginx: ChildProcess;
  let port: number;

  before(async () => {
    const mounts = new Map<string, ReturnType<typeof managementApi>>();
    for (const [name, proxyHeader] of [
      ['xff', 'x-forwarded-for'],
      ['rfc', 'forwarded']
    ] as const) {
      const trusted = { trustedProxies: ['127.0.0.1'], proxyHeader };
      attachWebSocket(broker, http, { ...trusted, path: `/${name}/mqtt`, name });
      mounts.set(name, managementApi(broker, { ...trusted, revision: 'later', prefix: `/${name}/api` }));
    }
    http.on('request', (incoming, outgoing) => {
      mounts.get(incoming.url?.split('/')[1] as string)?.node(incoming, outgoing);
    });
    http.listen(0, '127.0.0.1');
    await Promise.all([once(http, 'listening'), broker.start()]);
    await broker.applications.add({ id: 'ops', secret: 'a secret of the test' });
    const free = createTcpServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    port = (free.address() as AddressInfo).port;
    free.close();
    await once(free, 'close');
    const behind = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    // each location appends to one header, and sends the other one on as the client has sent it
    writeFileSync(
      join(folder, 'nginx.conf'),
      `worker_processes 1; error_log stderr info; pid ${folder}/pid;
      events {}
      http {
        access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
        uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        server {
          listen 127.0.0.1:${port};
          location /xff/ {
            proxy_pass ${behind};
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          }
          location /rfc/ {
            proxy_pass ${behind};
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
            proxy_set_header Forwarded "$http_forwarded, for=$remote_addr;proto=$scheme";
          }
        }
      }`
    );
    nginx = spawn(NGINX, ['-c', join(folder, 'nginx.conf'), '-g', 'daemon off;'], {
      stdio: ['ignore', 'ignore', 'pipe']
    });
    let log = '';
    for await (const chunk of nginx.stderr!) if (/start worker process /.test((log += chunk))) return;
    assert.fail(log);
  });

  after(async () => {
    if (nginx.exitCode === null) {
      nginx.kill('SIGTERM');
      await once(nginx, 'exit');
    }
    http.close();
    http.closeAllConnections();
    await broker.stop();
    rmSync(folder, { recursive: true });
  });

  for (const [name, header] of [
    ['xff', 'X-Forwarded-For'],
    ['rfc', 'Forwarded']
  ]) {
    it(`takes the address of the connection to nginx, over WebSocket with ${header}`, async () => {
      const connected = broker.nextEvent('client.connected');
      const createWebsocket = (url: string, protocols: string[]) =>
        new WebSocket(url, protocols, { headers: FORGED, localAddress: CLIENT });
      const url = `ws://127.0.0.1:${port}/${name}/mqtt`;
      const client = await mqtt.connectAsync(url, { createWebsocket, reconnectPeriod: 0 } as never);
      assert.equal((await connected).client.transportInfo.remoteAddress, CLIENT);
      await client.endAsync();
    });

    it(`takes the address of the connection to nginx for limits of logins and the audit log of REST, with ${header}`, async () => {
      const ask = async (method: string, path: string, login: string, body?: string) => {
        const sent = request({
          host: '127.0.0.1',
          port,
          localAddress: CLIENT,
          path: `/${name}/api${path}`,
          method,
          headers: { ...FORGED, authorization: `Basic ${btoa(login)}`, 'content-type': 'application/json' }
        });
        sent.end(body);
        const [answer] = await once(sent, 'response');
        return { status: answer.statusCode as number, text: (await answer.toArray()).join('') as string };
      };
      const ops = 'ops:a secret of the test';
      const banned = JSON.stringify({ as: 'clientid', who: `${name}-1` });
      assert.equal((await ask('POST', '/banned', ops, banned)).status, 200);
      const [{ address }] = broker.monitor.audit.list().entries;
      assert.equal(address, CLIENT);
      for (let i = 0; i < 10; i++) assert.equal((await ask('GET', '/clients', `${name}:wrong`)).status, 401);
      assert.equal((await ask('GET', '/clients', `${name}:wrong`)).status, 429);
    });
  }
});
