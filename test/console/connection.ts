// Connections and sessions that end while the console is open.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { type Broker, createBroker } from 'embermq';
import { type Dashboard, dashboard } from 'embermq/dashboard';
import type { Page } from 'playwright-core';
import { PASSWORD } from '../support/dashboard.ts';
import { logIn, openTab, settled, type Tab } from './browser.ts';
import { describeConsole } from './setup.ts';

const TOPIC = 'live/value';
const MAX_STREAMS = 64;

/** A server whose broker can be replaced, and which can refuse connections. */
async function startServer() {
  let broker: Broker;
  let mounted: Dashboard;
  let isDown = false;
  const start = async () => {
    broker = createBroker({ passwordCost: 10, allowAnonymous: true });
    await broker.start();
    await broker.users.create('ann', PASSWORD, 'administrator');
    mounted = dashboard(broker, { prefix: '/console' });
  };
  await start();
  const server = createServer((request, response) => {
    if (isDown) response.destroy();
    else mounted.node(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/console`,
    publish: (payload: string) => broker.publish(TOPIC, payload),
    /** Stop the broker and start another one, as after an update. */
    async restart() {
      await broker.stop();
      await start();
    },
    goDown() {
      isDown = true;
      server.closeAllConnections();
    },
    comeBack() {
      isDown = false;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await broker.stop();
    }
  };
}

const liveMark = (page: Page) => page.locator('.live-text');

/** Publish until the view shows the payload: a watch takes a moment to begin. */
async function showsValue({ page }: Tab, publish: (payload: string) => Promise<unknown>, payload: string) {
  const shown = page.locator('.detail pre', { hasText: payload });
  for (let tries = 0; tries < 200 && !(await shown.isVisible()); tries++) {
    await publish(payload);
    await page.evaluate('new Promise(requestAnimationFrame)');
  }
  await shown.waitFor();
}

/** Faults except those of requests without a connection. */
const faultsOf = (tab: Tab) => tab.faults.filter((fault) => !fault.includes('net::ERR_'));

/** A script that makes a page believe that its tab is hidden or shown: chromium without a window shows all. */
const asIf = (state: 'visible' | 'hidden') => `
  Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
`;

async function setVisible(page: Page, state: 'visible' | 'hidden') {
  await page.evaluate(asIf(state));
}

describeConsole('Connections of the console', (served) => {
  it('says that the connection is lost, keeps what was shown, and shows values again afterwards', async () => {
    await using server = await startServer();
    const tab = await openTab(`${server.base}/topics?topic=${encodeURIComponent(TOPIC)}`);
    await logIn(tab, 'ann');
    await showsValue(tab, server.publish, 'first');
    server.goDown();
    await tab.page.getByText('connection lost').waitFor();
    assert.equal(await tab.page.locator('.detail pre', { hasText: 'first' }).isVisible(), true);
    await tab.page.getByRole('button', { name: 'Try now' }).click();
    await tab.page.getByText('connection lost').waitFor();
    server.comeBack();
    await tab.page.getByRole('button', { name: 'Try now' }).click();
    await liveMark(tab.page)
      .filter({ hasText: /^live$/ })
      .waitFor();
    await showsValue(tab, server.publish, 'second');
    assert.deepEqual(faultsOf(tab), []);
    await tab.close();
  });

  it('asks for the login after a restart of the broker, and returns to the view with live values', async () => {
    await using server = await startServer();
    const tab = await openTab(`${server.base}/topics?topic=${encodeURIComponent(TOPIC)}`);
    await logIn(tab, 'ann');
    await showsValue(tab, server.publish, 'before');
    const address = tab.page.url();
    await server.restart();
    await tab.page.getByRole('dialog').getByText('The session has ended').waitFor();
    for (let count = 0; count < 4; count++) await tab.page.keyboard.press('Escape');
    await logIn(tab, 'ann');
    await tab.page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(tab.page.url(), address);
    await showsValue(tab, server.publish, 'after');
    assert.deepEqual(faultsOf(tab), []);
    await tab.close();
  });

  it('ends the session in all tabs at logout, and shows nothing of it afterwards', async () => {
    const tab = await openTab(`${served.base}/clients`);
    await logIn(tab, 'ann');
    const other = await tab.page.context().newPage();
    await other.goto(`${served.base}/`);
    await liveMark(other)
      .filter({ hasText: /^live$/ })
      .waitFor();
    await tab.page.getByRole('button', { name: 'Log out' }).click();
    await tab.page.getByLabel('Password').waitFor();
    assert.equal(await tab.page.getByText('meter-1').count(), 0);
    await other.getByRole('dialog').getByText('The session has ended').waitFor();
    await tab.page.goBack();
    assert.equal(await tab.page.getByText('meter-1').count(), 0);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows live values in ten tabs at once, and in ten tabs of one browser while one of them is shown', async () => {
    const path = `topics?topic=${encodeURIComponent(TOPIC)}`;
    const publish = (payload: string) => served.broker.publish(TOPIC, payload);
    const first = await served.open(path, 'ann', {});
    const storageState = await first.page.context().storageState();
    const others = Array.from({ length: 9 }, () => openTab(`${served.base}/${path}`, { storageState }));
    const tabs = [first, ...(await Promise.all(others))];
    await Promise.all(tabs.map((tab) => showsValue(tab, publish, 'to all')));
    for (const tab of tabs.slice(1)) {
      assert.deepEqual(tab.faults, []);
      await tab.close();
    }
    // a browser has six connections to a server: only the tab that is shown has a stream
    await setVisible(first.page, 'hidden');
    const context = first.page.context();
    await context.addInitScript(asIf('hidden'));
    const opened = Array.from({ length: 9 }, async () => {
      const page = await context.newPage();
      await page.goto(first.page.url());
      await settled({ ...first, page });
      return page;
    });
    const pages = [first.page, ...(await Promise.all(opened))];
    for (const at of [0, 5, 9]) {
      const page = pages[at];
      await setVisible(page, 'visible');
      await showsValue({ ...first, page }, publish, `to page ${at}`);
      await setVisible(page, 'hidden');
      await liveMark(page).filter({ hasText: 'paused' }).waitFor();
    }
    assert.deepEqual(first.faults, []);
    await first.close();
  });

  it('shows live values in four of ten tabs of a browser that are all shown, and loads lists in the others', async () => {
    const first = await served.open('clients', 'ann', {});
    const context = first.page.context();
    const isLive = (page: Page) => liveMark(page).filter({ hasText: /^live$/ });
    const isRefused = (page: Page) => page.getByRole('status').filter({ hasText: '4 other windows' });
    await isLive(first.page).waitFor();
    const pages = [first.page];
    while (pages.length < 10) {
      const page = await context.newPage();
      pages.push(page);
      await page.goto(`${served.base}/clients`);
      await (pages.length <= 4 ? isLive(page) : isRefused(page)).waitFor();
      await page.getByRole('link', { name: 'meter-1' }).waitFor();
    }
    await setVisible(pages[1], 'hidden');
    await liveMark(pages[1]).filter({ hasText: 'paused' }).waitFor();
    await isLive(pages[9])
      .or(pages[9].getByRole('button', { name: 'Try now' }))
      .waitFor();
    if (!(await isLive(pages[9]).isVisible())) await pages[9].getByRole('button', { name: 'Try now' }).click();
    await Promise.any(pages.slice(4).map((page) => isRefused(page).waitFor({ state: 'detached' })));
    assert.deepEqual(first.faults, []);
    await first.close();
  });

  it(`says why it shows nothing live if ${MAX_STREAMS} tabs do, and begins after one of them is hidden`, async () => {
    const last = await served.open('');
    await liveMark(last.page)
      .filter({ hasText: /^live$/ })
      .waitFor();
    const ending = new AbortController();
    const headers = { authorization: `Basic ${btoa(`ann:${PASSWORD}`)}` };
    const streams: Response[] = []; // kept, because one that is collected as garbage ends
    while (streams.length < MAX_STREAMS - 1)
      streams.push(await fetch(`${served.base}/live`, { headers, signal: ending.signal }));
    assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200]);
    const tab = await served.open('');
    const reason = tab.page.getByRole('status').filter({ hasText: '64 tabs of the console are open' });
    await reason.waitFor();
    await setVisible(last.page, 'hidden');
    await liveMark(last.page).filter({ hasText: 'paused' }).waitFor();
    await liveMark(tab.page)
      .filter({ hasText: /^live$/ })
      .waitFor();
    await reason.waitFor({ state: 'detached' });
    assert.equal(streams.length, MAX_STREAMS - 1);
    ending.abort();
    assert.deepEqual(
      tab.faults.filter((fault) => !fault.includes('429')),
      []
    );
    for (const one of [tab, last]) await one.close();
  });
});
