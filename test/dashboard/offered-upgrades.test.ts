import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createBroker } from 'embermq';
import { dashboard } from 'embermq/dashboard';
import { listenHttp, tls } from 'embermq/net';
import { makeCertificates } from '../support/certificates.ts';
import { PASSWORD, startConsole } from '../support/dashboard.ts';

const OFFER = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n';

/** Log in and ask for the session on one connection, both with an offer of HTTP/2. @returns the lines with the status, and the rest */
async function statusesAt(port: number, isSecure: boolean): Promise<string[]> {
  const socket = isSecure
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1');
  const host = `Host: 127.0.0.1:${port}\r\n${OFFER}`;
  const body = JSON.stringify({ id: 'ann', password: PASSWORD });
  socket.write(
    `POST /login HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`
  );
  let text = '';
  let hasAsked = false;
  for await (const part of socket.on('ready', () => socket.write(body.slice(9)))) {
    text += part;
    const cookie = /set-cookie: ([^;]+)/i.exec(text)?.[1];
    if (cookie === undefined || hasAsked) continue;
    hasAsked = true;
    socket.write(`GET /session HTTP/1.1\r\n${host.replace('Upgrade,', 'close, Upgrade,')}Cookie: ${cookie}\r\n\r\n`);
  }
  return text.match(/HTTP\/1\.1 \d+/g) ?? [];
}

describe('Requests to the console that offer HTTP/2', () => {
  for (const isSecure of [false, true])
    it(`answers them as without the offer, with their bodies, at a port of the broker with${isSecure ? '' : 'out'} TLS`, async () => {
      await using broker = createBroker({ passwordCost: 10 });
      using certificates = makeCertificates();
      const { certFile, keyFile } = certificates.server;
      await broker.start();
      await broker.users.create('ann', PASSWORD, 'administrator');
      const listener = await listenHttp(broker, isSecure ? tls({ port: 0, certFile, keyFile }) : 0, dashboard(broker));
      assert.deepEqual(await statusesAt(listener.port as number, isSecure), ['HTTP/1.1 200', 'HTTP/1.1 200']);
    });

  it('answers them as without the offer at a server of the app with attachUpgrades', async () => {
    await using server = await startConsole({}, {}, (http, { attachUpgrades }) => void attachUpgrades(http));
    assert.deepEqual(await statusesAt(server.port, false), ['HTTP/1.1 200', 'HTTP/1.1 200']);
  });
});
