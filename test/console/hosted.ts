// The console in an Express app that parses bodies, behind a proxy with TLS.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { dashboard } from 'embermq/dashboard';
import express from 'express';
import { makeCertificates } from '../support/certificates.ts';
import { PASSWORD } from '../support/dashboard.ts';
import { logIn, openTab } from './browser.ts';
import { describeConsole } from './setup.ts';

const BASE = '/ops/tools/console';

/** True if the app has logged a person in. */
const hasLogin = ({ headers }: IncomingMessage) => headers.cookie?.includes('person=eve') === true;

/** An app of a customer: its body parsers come first, and it answers all other paths. */
function appWith(broker: Broker) {
  const { node } = dashboard(broker, { trustedProxies: ['127.0.0.1'] });
  const app = express().set('env', 'test').set('trust proxy', 'loopback');
  app.use(express.json(), express.urlencoded({ extended: true }), express.text({ type: '*/*' }));
  app.use(BASE, node);
  const hosted = dashboard(broker, {
    login: (request) => (hasLogin(request as IncomingMessage) ? { id: 'eve', scope: 'viewer' } : undefined),
    loginUrl: '/login?next={return}'
  });
  app.use('/hosted', hosted.node);
  app.get('/login', ({ query }, response) => response.cookie('person', 'eve').redirect(`${query.next}`));
  app.use((_request, response) => void response.status(404).send('the app'));
  return app;
}

/** A proxy with TLS in front of a port. */
function proxyTo(port: number, tls: { readonly cert: string | Buffer; readonly key: string | Buffer }) {
  return createTlsServer(tls, (incoming, outgoing) => {
    const headers = {
      ...incoming.headers,
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': incoming.headers.host
    };
    const { method, url: path } = incoming;
    const passed = request({ port, host: '127.0.0.1', method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
}

describeConsole('The console behind Express and a proxy', () => {
  it('logs in, publishes, shows live values and logs out at a base path, also with the login of the app', async () => {
    using certificates = makeCertificates();
    await using broker = createBroker({ passwordCost: 10 });
    await broker.start();
    await broker.users.create('ann', PASSWORD, 'administrator');
    const app = createServer(appWith(broker)).listen(0, '127.0.0.1');
    await once(app, 'listening');
    const proxy = proxyTo((app.address() as AddressInfo).port, certificates.server).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const origin = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const tab = await openTab(`${origin}${BASE}/topics?topic=a%2Fb`, { ignoreHTTPSErrors: true });
      const { page } = tab;
      await logIn(tab, 'ann');
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.path, cookie.sameSite], [true, true, BASE, 'Strict']);
      await page.getByText('none since the page was opened').waitFor();
      await page.getByRole('button', { name: 'Publish' }).click();
      await page.getByRole('dialog').getByLabel('Payload').fill('through the proxy');
      await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
      await page.locator('.detail pre', { hasText: 'through the proxy' }).waitFor();
      await page.getByRole('link', { name: 'Clients' }).click();
      await page.getByRole('heading', { name: 'Clients' }).waitFor();
      assert.equal(page.url(), `${origin}${BASE}/clients`);
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByLabel('Password').waitFor();
      assert.deepEqual(await page.context().cookies(), []);
      assert.deepEqual(tab.faults, []);
      await page.goto(`${origin}/hosted/tail?filter=a%2F%23`);
      assert.equal(await page.getByLabel('Password').count(), 0);
      await page.getByRole('link', { name: 'Log in with the account of this site' }).click();
      await page.getByRole('heading', { name: 'Live tail' }).waitFor();
      assert.equal(page.url(), `${origin}/hosted/tail?filter=a%2F%23`);
      await page.goto(`${origin}/orders`);
      await page.getByText('the app').waitFor();
      const addresses = broker.monitor.audit.list().entries.map(({ address }) => address);
      assert.ok(addresses.includes('203.0.113.9'), addresses.join(' '));
      await tab.close();
    } finally {
      for (const server of [proxy, app]) {
        server.closeAllConnections();
        server.close();
      }
    }
  });
});
