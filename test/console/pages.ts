// The pages of the console in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { logIn, openTab, settled } from './browser.ts';
import { describeConsole, HOSTILE_NAMES, seriousFindings } from './setup.ts';

/** The texts of the names that a page cannot show as they are. */
const SHOWN_AS: Readonly<Record<string, string>> = {
  '\u202Egnp.exe': 'U+202Egnp.exe',
  '   ': '···',
  [HOSTILE_NAMES.find(({ length }) => length === 4_000) ?? '']: `${'x'.repeat(120)}+ 3,880 characters`
};

describeConsole('The pages of the console', (served) => {
  it('opens the view that was asked for after the login, and no other after a wrong password', async () => {
    const tab = await openTab(`${served.base}/clients?_like_clientid=meter`);
    const { page } = tab;
    await page.getByLabel('User', { exact: true }).fill('ann');
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: 'wrong' }).waitFor();
    await logIn(tab, 'ann');
    await page.getByRole('link', { name: 'meter-1' }).waitFor();
    assert.equal(await page.getByRole('row').count(), 3);
    await page.evaluate(
      'Object.defineProperty(navigator, "clipboard", { value: undefined }); document.execCommand = () => false;'
    );
    await page.getByRole('button', { name: 'Copy as curl' }).press('Enter');
    await page.locator('.notice', { hasText: 'does not let the page copy' }).waitFor();
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Copy as curl');
    await page.route('**/logout', (route) => route.abort());
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.locator('.notice', { hasText: 'cannot be reached' }).waitFor();
    tab.faults.splice(0); // the request that was aborted
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows hostile names as text, and opens their clients', async () => {
    const tab = await served.open('clients');
    const { page } = tab;
    for (const name of HOSTILE_NAMES) {
      await page.goto(`${served.base}/client?id=${encodeURIComponent(name)}`);
      await settled(tab);
      const shown = await page.locator('main h1 .name').textContent();
      assert.equal(shown, SHOWN_AS[name] ?? name);
      await page.locator('main h1').getByText('connected').waitFor(); // its session was found
    }
    assert.equal(await page.evaluate('globalThis.hacked'), undefined);
    await page.goto(`${served.base}/topics?topic=${encodeURIComponent('odd/<b>bold</b>/ /state')}`);
    await page.getByRole('treeitem', { name: 'state retained' }).waitFor();
    await page.getByText('000000 00 ff').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('kicks a client, and lets a viewer see the button but not use it', async () => {
    await served.broker.connect({ clientId: 'to-kick' });
    const viewer = await served.open('client?id=to-kick', 'bob');
    assert.equal(await viewer.page.getByRole('button', { name: 'Kick' }).isDisabled(), true);
    await viewer.close();
    const tab = await served.open('client?id=to-kick');
    await tab.page.getByRole('button', { name: 'Kick' }).click();
    await tab.page.getByRole('dialog').getByRole('button', { name: 'Kick' }).click();
    await tab.page.getByText('There is no session with this client id').waitFor();
    assert.throws(() => served.broker.sessions.get('to-kick'), { code: 'SESSION_NOT_FOUND' });
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('bans a client: its connection ends, its page says so, and the ban can be lifted there', async () => {
    const { broker } = served;
    const client = await broker.connect({ clientId: 'to-ban' });
    const tab = await served.open('client?id=to-ban');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Ban', exact: true }).click();
    await dialog.getByLabel('For').selectOption('');
    await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
    await page.getByText('one connection was ended').waitFor();
    assert.equal(client.isConnected, false);
    assert.equal(broker.access.banned.get('clientId', 'to-ban')?.until, Infinity);
    await page.getByText('the client is banned: it is refused').waitFor();
    await page.getByRole('button', { name: 'Lift' }).click();
    await dialog.getByRole('button', { name: 'Lift' }).click();
    await page.getByText('it has never connected, or its session has ended').waitFor();
    assert.equal(broker.access.banned.get('clientId', 'to-ban'), undefined);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('offers a ban or its end only when it is known which, also for a client without a session', async () => {
    const { broker } = served;
    await broker.access.banned.create({ kind: 'clientId', who: 'banned-before' });
    const tab = await served.open('clients');
    const { page } = tab;
    const ban = page.getByRole('button', { name: 'Ban', exact: true });
    let answer = () => {};
    const isAsked = new Promise<void>((resolve) => {
      const held = new Promise<void>((go) => (answer = go));
      void page.route(/\/banned\?/, async (route) => {
        resolve();
        await held;
        await route.continue();
      });
    });
    await page.goto(`${served.base}/client?id=banned-before`);
    await isAsked;
    await ban.waitFor();
    assert.equal(await ban.isDisabled(), true);
    answer();
    await page.getByRole('button', { name: 'Lift' }).waitFor();
    assert.equal(await ban.count(), 0);
    await page.unroute(/\/banned\?/);
    await broker.access.banned.delete('clientId', 'banned-before');
    await page.goto(`${served.base}/client?id=meter-1`);
    await ban.and(page.locator(':enabled')).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('publishes a message, and shows a topic as its messages come', async () => {
    const tab = await served.open('topics?topic=live%2Fvalue');
    const { page } = tab;
    await page.getByText('none since the page was opened').waitFor();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').getByLabel('Payload').fill('21.5 degrees');
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.locator('.detail pre', { hasText: '21.5 degrees' }).waitFor();
    await page.getByRole('treeitem', { name: 'odd', exact: false }).first().locator('.tree-mark').click();
    const inner = page.getByRole('treeitem', { level: 2 }).filter({ hasText: '<b>bold<' });
    await inner.waitFor();
    await page.getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog').getByLabel('Payload').fill('kept');
    await page.getByRole('dialog').getByLabel('Retain').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('button', { name: 'Delete' }).waitFor();
    await inner.waitFor();
    // the retained message follows what others publish, also if the last message of a second is not retained
    const retained = page.locator('.detail .panel', { has: page.getByRole('heading', { name: 'Retained message' }) });
    const publish = (payload: string, retain: boolean) => served.broker.publish('live/value', payload, { retain });
    await Promise.all([publish('kept later', true), publish('not kept', false)]);
    await retained.locator('pre', { hasText: 'kept later' }).waitFor();
    await publish('', true);
    await page.getByText('This topic has no retained message').waitFor();
    await publish('kept again', true);
    await retained.locator('pre', { hasText: 'kept again' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('This topic has no retained message').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
    assert.ok(await inner.isVisible());
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('tails messages, and keeps what is shown while it is paused', async () => {
    const tab = await served.open('tail?filter=tailed/%23&where=payload.t%20>%2020');
    const { page } = tab;
    const client = await served.broker.connect({ clientId: 'tailed' });
    await page.getByText('Waiting for messages').waitFor();
    const row = page.getByRole('button', { name: '"t": 21' });
    for (let tries = 0; tries < 1_000 && !(await row.first().isVisible()); tries++)
      for (const t of [19, 21]) await client.publish('tailed/a', `{ "t": ${t} }`, { qos: 1 });
    await page.locator('main h1').focus();
    await page.keyboard.press(' ');
    await page.getByText('Paused.').waitFor();
    await client.publish('tailed/a', '{ "t": 99 }', { qos: 1 });
    await page.getByText(/newer rows? waits?/).waitFor();
    assert.equal(await page.getByRole('button', { name: '"t": 99' }).count(), 0);
    await page.keyboard.press(' ');
    await page.getByRole('button', { name: '"t": 99' }).waitFor();
    assert.equal(await page.getByRole('button', { name: '"t": 19' }).count(), 0);
    await page.getByLabel('Where').fill('payload.t >');
    await page.getByRole('alert').filter({ hasText: 'column 12' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('makes a rule: errors at their place, a test with a real message, an action, counters', async () => {
    const tab = await served.open('rule');
    const { page } = tab;
    await page.getByLabel('Id').fill('warm');
    const editor = page.getByRole('textbox', { name: 'Statement' });
    await editor.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('SELECT payload.t AS t,, topic FROM "rooms/+"');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').filter({ hasText: 'column 23' }).first().waitFor();
    await page.locator('.cm-lintRange-error').waitFor();
    await editor.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('SELECT payload.t AS t, topic FROM "rooms/+"');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Use the next real message' }).click();
    const client = await served.broker.connect({ clientId: 'room' });
    const waiting = page.getByRole('button', { name: 'Waiting for a message' });
    for (let tries = 0; tries < 1_000 && (await waiting.isVisible()); tries++)
      await client.publish('rooms/1', '{"t":21.5}', { qos: 1 });
    await page.getByRole('button', { name: 'Run the test' }).click();
    await page.locator('.result', { hasText: '"t": 21.5' }).waitFor();
    await page.getByRole('button', { name: 'Add an action' }).click();
    await page.getByRole('dialog').getByLabel('Target Topic').fill('warm/rooms');
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('The rule was saved').waitFor();
    await page.getByRole('heading', { name: 'warm running' }).waitFor();
    await page.getByRole('listitem').filter({ hasText: 'Target Topic warm/rooms' }).waitFor();
    assert.equal(await page.getByText('target_topic').count(), 0);
    assert.equal((await served.broker.rules.get('warm'))?.actions.length, 1);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds and removes an access rule and a ban, and shows the secret of an application once', async () => {
    const tab = await served.open('access?tab=rules');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const focused = () => page.evaluate('document.activeElement.textContent');
    await page.getByRole('button', { name: 'Add a rule' }).click();
    await dialog.getByLabel('Name').fill('../x');
    await dialog.getByLabel('Topic filter').fill('a/#');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('cell', { name: '../x' }).waitFor();
    assert.equal(await focused(), 'Add a rule');
    await page.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('No rules were set at run time').waitFor();
    await page.locator('main h1:focus').waitFor();
    await page.goto(`${served.base}/access?tab=bans`);
    await page.getByRole('button', { name: 'Ban', exact: true }).click();
    await dialog.getByLabel('Name').fill('evil/..');
    await dialog.getByRole('button', { name: 'Ban' }).click();
    await page.getByRole('cell', { name: 'evil/..' }).waitFor();
    assert.equal(served.broker.access.banned.get('clientId', 'evil/..')?.by, 'ann');
    await page.goto(`${served.base}/access?tab=apps`);
    await page.getByRole('button', { name: 'Add an application' }).click();
    await dialog.getByLabel('Id').fill('robot');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('The secret of robot is shown only now').waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('cell', { name: 'robot' }).first().waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('finds pages and clients in one box', async () => {
    const tab = await served.open('');
    const { page } = tab;
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('meter-2');
    await page.getByRole('option', { name: 'Client meter-2' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'meter-2' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('xxxxxxxx');
    await page.getByRole('option').filter({ hasText: '+ 3,900 characters' }).first().waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    await page.getByRole('combobox', { name: 'Find' }).fill('alarm');
    await page.getByRole('option', { name: 'Page Alarms', exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Alarms' }).and(page.locator(':focus')).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'meter-2' }).and(page.locator(':focus')).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('breaks the long texts of the history of a client into lines', async () => {
    const client = await served.broker.connect({ clientId: 'ended' });
    await client.subscribe('commands/+');
    await served.broker.access.banned.create({ kind: 'clientId', who: 'ended', until: Infinity, reason: 'a test' });
    await served.broker.access.banned.disconnect('clientId', 'ended');
    const tab = await served.open('client?id=ended&tab=history');
    const { page } = tab;
    await page
      .getByRole('cell', { name: /^The session ended/ })
      .or(page.getByRole('row').nth(3))
      .first()
      .waitFor();
    const [inner, outer] = await page.evaluate<[number, number]>(
      "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('.table-frame'))"
    );
    assert.equal(inner, outer, 'nothing has to be scrolled sideways');
    await served.broker.access.banned.delete('clientId', 'ended');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('asks for the login again when the session has ended, above what was shown, and goes on', async () => {
    const tab = await served.open('clients?_like_clientid=meter');
    const { page } = tab;
    await page.getByRole('link', { name: 'meter-1' }).waitFor();
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Load again' }).dispatchEvent('click'); // if the page has noticed before, its dialog covers the button
    const dialog = page.getByRole('dialog', { name: 'The session has ended' });
    await dialog.waitFor();
    assert.equal(await dialog.getByRole('heading').count(), 1);
    assert.equal(await dialog.getByLabel('User').inputValue(), 'ann');
    await dialog.locator('[name=password]:focus').waitFor();
    const [inner, outer] = await Promise.all([dialog.getByLabel('User').boundingBox(), dialog.boundingBox()]);
    assert.ok(inner && outer && inner.x - outer.x >= 12, 'the form has a padding');
    await logIn(tab, 'ann');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'meter-1' }).click();
    await page.getByRole('heading', { name: 'meter-1' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('can be used with the keyboard alone', async () => {
    const tab = await served.open('');
    const { page } = tab;
    await page.locator('main h1').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1');
    await page.goto(`${served.base}/topics`);
    await page.getByRole('tree').focus();
    for (const key of ['End', 'Home', 'ArrowDown', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
    await page.getByRole('treeitem', { level: 2 }).first().waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
