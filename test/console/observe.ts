// The pages that show topics, clients and messages, in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { visit } from './browser.ts';
import { describeConsole, seriousFindings } from './setup.ts';

describeConsole('Observing topics, clients and messages', (served) => {
  it('shows payloads as CBOR and Sparkplug B, by content type and topic or when they are chosen, and faults in words', async () => {
    const client = await served.broker.connect({ clientId: 'binary' });
    const retained = async (topic: string, hex: string, contentType?: string) =>
      client.publish(topic, Buffer.from(hex, 'hex'), {
        retain: true,
        ...(contentType !== undefined && { properties: { contentType } })
      });
    await retained('bin/cbor', 'a2617401616182c10280', 'application/cbor');
    await retained('bin/deep', '81'.repeat(5_000));
    await retained('spBv1.0/plant/DDATA/n/d', '12110a0454656d70200a690000000000803540');
    const tab = await served.open('topics?topic=bin/cbor');
    const { page } = tab;
    const shown = (text: RegExp | string) => page.locator('.detail pre').filter({ hasText: text }).waitFor();
    await shown(/"t": 1,\s+"a": \[\s+1\(2\)/);
    await page.getByRole('button', { name: 'Hex', exact: true }).click();
    await shown('000000  a2 61 74');
    await page.goto(`${served.base}/topics?topic=bin/deep`);
    await page.getByRole('button', { name: 'CBOR' }).click();
    await page.getByText('nested too deeply from byte 65').waitFor();
    await page.getByRole('button', { name: 'Sparkplug B' }).click();
    await page.getByText('The payload is not Sparkplug B from byte 0 on').waitFor();
    await page.goto(`${served.base}/topics?topic=spBv1.0/plant/DDATA/n/d`);
    await shown(/"name": "Temp",\s+"datatype": "Double",\s+"value": 21.5/);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows the state chart of a session with its transitions, one after the other with the keyboard, while it changes', async () => {
    const persistent = { clientId: 'charted', clean: false, properties: { sessionExpiryInterval: 1_000 } };
    await served.broker.connect(persistent);
    const tab = await served.open('client?id=charted&tab=chart');
    const { page } = tab;
    await page.getByRole('img', { name: 'Current state: connected' }).waitFor();
    assert.equal(await page.getByRole('row').count(), 2);
    await served.broker.connect(persistent);
    await page.getByRole('row').filter({ hasText: 'takenOver' }).waitFor();
    const chart = page.getByRole('group', { name: 'Left and Right' });
    await chart.focus();
    await page.keyboard.press('ArrowLeft');
    await page.getByText('Transition 2 of 2').waitFor();
    assert.deepEqual(await page.locator('.state-chart .passed text').allTextContents(), [
      'connected',
      'takenOver',
      'takenOver',
      'at once'
    ]);
    await page.keyboard.press('Home');
    await page.getByText('Transition 1 of 2').waitFor();
    const address = page.url();
    await page.keyboard.press('End');
    await page.getByText('The session is in the state connected').waitFor();
    await page.goto(address);
    await page.getByText('Transition 1 of 2').waitFor();
    served.broker.sessions.get('charted').kick();
    await page.getByRole('img', { name: 'Current state: gone' }).waitFor();
    await page.getByRole('button', { name: 'Load again' }).click();
    await page.getByText('There is no session with this client id').waitFor();
    await page.getByRole('row').filter({ hasText: 'gone' }).waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('finds things and actions in one box with the keyboard, opens the dialog of an action, and lets a viewer change nothing', async () => {
    await served.broker.connect({ clientId: 'to kick' });
    const tab = await served.open('', 'ann', {});
    const { page } = tab;
    const box = page.getByRole('combobox', { name: 'Find' });
    const find = async (text: string, option: string) => {
      await page.keyboard.press('Control+k');
      await page.locator('input[role=combobox]:focus').waitFor();
      await page.keyboard.type(text);
      await page.locator('[role=option][aria-selected=true]').filter({ hasText: option }).waitFor();
      assert.deepEqual(await seriousFindings(tab), []);
      await page.keyboard.press('Enter');
      await box.waitFor({ state: 'detached' });
    };
    await find('kick to k', 'Kick to kick');
    const dialog = page.getByRole('dialog', { name: 'Kick the client' });
    await dialog.locator('.action-of', { hasText: /^to kick$/ }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).search, '?id=to+kick');
    assert.equal(served.broker.sessions.has('to kick'), true);
    await find('kick to k', 'Kick to kick');
    await dialog.getByRole('button', { name: 'Kick' }).press('Enter');
    await page.getByText('There is no session with this client id').waitFor();
    assert.equal(served.broker.sessions.has('to kick'), false);
    await page.getByRole('button', { name: 'Ban', exact: true }).click();
    const banned = page.getByRole('dialog', { name: 'Ban the client' });
    await banned.getByRole('button', { name: 'Ban', exact: true }).click();
    await page.getByText('the client is banned').waitFor();
    await page.getByRole('button', { name: 'Lift the ban' }).waitFor();
    await find('hot', 'Rule hot');
    await page.getByRole('heading', { name: 'hot' }).waitFor();
    await find('dark', 'Dark colours');
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
    await find('publish a', 'Publish a message');
    await page.getByRole('dialog', { name: 'Publish a message' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await box.fill('commands');
    await page.getByRole('option', { name: 'Subscription commands/+' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Topic filter' }).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('filter'), 'commands/+');
    await find('log out', 'Log out');
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
    const viewer = await served.open('client?id=meter-1&do=kick', 'bob');
    await viewer.page.getByRole('heading', { name: 'meter-1' }).waitFor();
    await viewer.page.keyboard.press('Control+k');
    await viewer.page.getByRole('combobox', { name: 'Find' }).fill('kick meter-1');
    await viewer.page.getByRole('option', { name: 'Kick meter-1 only for administrators', selected: true }).waitFor();
    await viewer.page.keyboard.press('Enter');
    await viewer.page.keyboard.press('Escape');
    assert.equal(await viewer.page.getByRole('dialog').count(), 0);
    assert.equal(served.broker.sessions.has('meter-1'), true);
    await viewer.close();
  });

  it('opens client ids and topics that are longer than a URL, "." and "..", or only blanks', async () => {
    const { broker } = served;
    const names = ['long '.repeat(12_000), 'é'.repeat(10_000), '.', '..', '   '];
    const tab = await served.open('clients');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    for (const name of names) {
      if (!broker.sessions.has(name)) await broker.connect({ clientId: name });
      const client = broker.sessions.get(name);
      await (await broker.connect({ clientId: 'writer' })).publish(name, 'kept', { retain: true });
      await visit(tab, `${served.base}/no-view`);
      const index = names.indexOf(name);
      const query = new URLSearchParams({ id: name, tab: 'chart' });
      const address = `${new URL(served.base).pathname}/client${name.length > 600 ? '#' : '?'}${query}`;
      await page.evaluate(
        `history.pushState(null, '', ${JSON.stringify(address)}); dispatchEvent(new PopStateEvent('popstate'))`
      );
      for (const visit of ['link', 'reload']) {
        if (visit === 'reload') await page.reload();
        await page.getByRole('img', { name: 'Current state: connected' }).waitFor();
        await page.getByRole('row').filter({ hasText: 'accepted' }).waitFor();
      }
      for (const part of ['Queue', 'Decisions on rights', 'History']) {
        await page.getByRole('link', { name: part }).click();
        await page.locator('main:not(:has(.loading)):not(:has(.problem)) h1').waitFor();
      }
      await page.getByRole('button', { name: 'Trace' }).click();
      await dialog.getByRole('button', { name: 'Trace' }).click();
      await page.getByText('The trace was started').first().waitFor();
      await page.getByRole('button', { name: 'Kick' }).click();
      await dialog.getByRole('button', { name: 'Kick' }).click();
      await page.getByText('There is no session with this client id').waitFor();
      assert.equal(client.state, 'gone', `name ${index}`);
      await visit(tab, `${served.base}/topics`);
      await page.getByRole('textbox', { name: 'Topic or topic filter' }).fill(name);
      await page.getByRole('button', { name: 'Show', exact: true }).click();
      await page.locator('.detail pre').filter({ hasText: 'kept' }).waitFor();
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('This topic has no retained message').waitFor();
      assert.equal(await broker.retained.get(name), undefined);
    }
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('keeps the filter, the condition and the events of a tail in its address, and pauses with a key', async () => {
    const tab = await served.open('tail?filter=late/%23&where=qos%20>%200');
    const { page } = tab;
    await page.getByText('Space pauses and resumes, C clears').waitFor();
    await page.getByLabel('Events').selectOption({ label: 'Connections' });
    await page.getByLabel('Where').fill('');
    await page.getByLabel('Topic filter').fill('');
    await page.waitForURL(/tail\?names=client\.connected/);
    const address = page.url();
    await page.goto(`${served.base}/`);
    await page.goto(address);
    await page.getByText('Waiting for messages').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'client.connected' });
    for (let tries = 0; tries < 200 && !(await row.first().isVisible()); tries++)
      await served.broker.connect({ clientId: 'tailed-late' });
    await row.first().getByRole('link', { name: 'tailed-late' }).waitFor();
    await page.locator('main h1').focus();
    await page.keyboard.press(' ');
    await page.getByText('Paused.').waitFor();
    await page.keyboard.press('c');
    await page.getByText('Waiting for messages').waitFor();
    await page.getByLabel('Topic filter').fill('being/typed');
    await page.getByRole('button', { name: 'Clear all' }).click();
    await page.waitForURL(/tail$/);
    assert.equal(await page.getByLabel('Topic filter').inputValue(), '');
    await page.goto(`${served.base}/why?topic=never%2Fsent`);
    await page.getByText(/^All records about this question are kept since 20/).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('asks why without a time unless a person gives one, so that a later subscription is named', async () => {
    await served.broker.publish('missed/one', 'x');
    await (await served.broker.connect({ clientId: 'late' })).subscribe('missed/one');
    const tab = await served.open('why?topic=missed%2Fone&client=late');
    const { page } = tab;
    const times: (string | null)[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.endsWith('/x/why')) times.push(searchParams.get('at'));
    });
    const answered = () => page.waitForResponse(/\/x\/why\?/);
    const ask = page.getByRole('button', { name: 'Find out' });
    const later = page.getByRole('heading', { name: /late.* subscribed to .* after the message was published/ });
    await later.waitFor();
    const address = page.url();
    await Promise.all([answered(), page.getByRole('button', { name: 'Ask again' }).click()]);
    await Promise.all([answered(), ask.click()]);
    await Promise.all([answered(), page.reload()]);
    assert.equal(page.url(), address);
    await page.getByLabel('Time').fill('2026-01-02T03:04:05');
    await Promise.all([answered(), ask.click()]);
    const given = new URL(page.url()).searchParams.get('at') as string;
    assert.match(given, /^2026-01-0\dT.*:05Z$/);
    await page.getByLabel('Time').fill('');
    await Promise.all([answered(), ask.click()]);
    await later.waitFor();
    assert.deepEqual(times, [null, null, null, `${Date.parse(given)}`, null]);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows more topics of a level after its first page has come behind a later one', async () => {
    for (let at = 100; at < 350; at++) await served.broker.publish(`many/${at}`, 'x', { retain: true });
    const tab = await served.open('topics');
    const { page } = tab;
    await page.getByRole('treeitem', { name: 'many' }).locator('.tree-mark').click();
    const more = page.getByRole('treeitem', { name: 'Show more' });
    await page.getByRole('treeitem', { name: /^100/ }).waitFor();
    const toEnd = () =>
      page.locator('.tree').evaluate((element: { scrollTop: number }) => (element.scrollTop = 100_000));
    await toEnd();
    await more.waitFor();
    const ofLevel = (isFirst: boolean) => (url: URL) =>
      /\/x\/topics$/.test(url.pathname) &&
      url.searchParams.get('prefix') === 'many/' &&
      isFirst !== url.searchParams.has('cursor');
    let answer = () => {};
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route(ofLevel(true), async (route) => {
      await isAnswered;
      await route.continue();
    });
    const later = page.waitForResponse((response) => ofLevel(false)(new URL(response.url())));
    // both buttons are pressed before the page is drawn again
    await page.evaluate(`
      const more = [...document.querySelectorAll('[role=treeitem]')].find((row) => /Show more/.test(row.textContent));
      [...document.querySelectorAll('.tree-foot button')].at(-1).click();
      more.click();
    `);
    await later;
    const first = page.waitForResponse((response) => ofLevel(true)(new URL(response.url())));
    answer();
    await first;
    const last = page.getByRole('treeitem', { name: /^349/ });
    for (let tries = 0; tries < 1_000 && !(await last.isVisible()); tries++) {
      await toEnd();
      // before the answer is drawn, the row asks for a page that no longer follows
      await more.evaluateAll(([row]: { click(): void }[]) => row?.click());
    }
    const rowOf = async (name: RegExp) =>
      Number((await page.getByRole('treeitem', { name }).getAttribute('id'))?.replace('row-', ''));
    const lastRow = await rowOf(/^349/);
    await page.locator('.tree').evaluate((element: { scrollTop: number }) => (element.scrollTop = 0));
    assert.equal(lastRow - (await rowOf(/^100/)), 249);
    assert.deepEqual(tab.faults, []);
    await page.unrouteAll();
    await tab.close();
  });

  it('offers topics that are published while the page is open, and shows them in order and marked, without retained messages and subscriptions', async () => {
    const client = await served.broker.connect({ clientId: 'publisher' });
    const tab = await served.open('topics');
    const { page } = tab;
    const row = page.getByRole('treeitem', { name: 'fresh' });
    await page.getByRole('treeitem', { name: 'meters' }).click();
    const offer = page.getByRole('button', { name: /^Show changes: \d+ new/ });
    for (let tries = 0; tries < 3_000 && !(await offer.isVisible()); tries++)
      await client.publish('fresh/one', '1', { qos: 1 });
    assert.equal(await row.isVisible(), false);
    await offer.click();
    await row.waitFor();
    assert.match(`${await page.locator('.tree-row.active').textContent()}`, /^meters/);
    const names = await page.locator('[role=treeitem][aria-level="1"] .tree-name').allInnerTexts();
    assert.ok(names.indexOf('fresh') < names.indexOf('meters'), `${names}`);
    await row.locator('.tree-mark').click();
    await page.getByRole('treeitem', { name: 'one published' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('collects the values of a pinned topic while another view is shown, and marks those that are cut', async () => {
    const client = await served.broker.connect({ clientId: 'pinned' });
    const tab = await served.open('topics?topic=pinned%2Fone');
    const { page } = tab;
    await page.getByRole('button', { name: 'Pin', exact: true }).click();
    const first = page.getByText('1 of the last 100 values');
    for (let tries = 0; tries < 1_000 && !(await first.isVisible()); tries++)
      await client.publish('pinned/one', 'short', { qos: 1 });
    const navigation = page.getByRole('navigation', { name: 'Views' });
    await navigation.getByRole('link', { name: 'Listeners' }).click();
    await page.getByRole('heading', { name: 'Listeners' }).waitFor();
    await page.locator('.live-text', { hasText: 'connected' }).waitFor();
    await client.publish('pinned/one', 'x'.repeat(3_000), { qos: 1 });
    await navigation.getByRole('link', { name: 'Topics' }).click();
    await page.getByRole('link', { name: 'pinned/one' }).click();
    await page.getByText('the first 1 kB of 3 kB').first().waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows the subscriptions that match a topic, with links to their clients', async () => {
    const tab = await served.open('topics?topic=commands%2F7');
    const { page } = tab;
    await page.getByRole('heading', { name: 'Subscriptions that match this topic' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'meter-1' }).getByRole('link', { name: 'commands/+' }).waitFor();
    await page.getByRole('link', { name: 'meter-1' }).click();
    await page.getByRole('heading', { name: 'meter-1' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
