// Actions on clients, topics, rules, users and connections in a real browser, and the commands that pages copy.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { PASSWORD } from '../support/dashboard.ts';
import { copyBy } from './browser.ts';
import { describeConsole } from './setup.ts';
import { connectUnread } from './views.ts';

describeConsole('Actions in the console', (served) => {
  it('collects the values of a pinned topic, also while another view is shown, and shows and saves two of them', async () => {
    const tab = await served.open('topics?topic=pinned%2Fvalue');
    const { page } = tab;
    const client = await served.broker.connect({ clientId: 'pinned' });
    await page.getByRole('button', { name: 'Pin', exact: true }).click();
    const values = page.locator('ul.pinned li');
    for (let tries = 0; tries < 1_000 && (await values.count()) === 0; tries++)
      await client.publish('pinned/value', '{"t":21}', { qos: 1 });
    await page.getByRole('link', { name: 'Clients', exact: true }).first().click();
    await page.getByRole('link', { name: 'meter-1' }).waitFor();
    await client.publish('pinned/value', '{"t":22.5}', { qos: 1 });
    await page.goBack();
    await values.filter({ hasText: '22.5' }).first().waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await values.filter({ hasText: '22.5' }).first().getByRole('checkbox').check();
    await values.filter({ hasText: '21' }).last().getByRole('checkbox').check();
    await page.locator('.diff-first', { hasText: '"t": 21' }).waitFor();
    await page.locator('.diff-second', { hasText: '"t": 22.5' }).waitFor();
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as JSON', exact: true }).click();
    const saved = JSON.parse(readFileSync(await (await saving).path(), 'utf8'));
    assert.deepEqual([saved[0].topic, saved[0].payload], ['pinned/value', '{"t":21}']);
    assert.equal(saved.at(-1).payload, '{"t":22.5}');
    await page.getByRole('button', { name: 'Pin', exact: true }).click();
    await values.first().waitFor({ state: 'detached' });
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('clears the queue of a client, and deletes the decisions on its rights', async () => {
    const { broker } = served;
    await connectUnread(broker, 'full', ['unread/1', 'unread/2', 'unread/3', 'unread/4']);
    const tab = await served.open('client?id=full&tab=queue');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByRole('cell', { name: 'unread/4' }).waitFor();
    await page.getByRole('button', { name: 'unread/3' }).click();
    await page.locator('.below').filter({ hasText: 'unread/3' }).waitFor();
    await page.getByRole('button', { name: 'Clear the queue' }).click();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('cell', { name: 'unread/4' }).waitFor();
    await page.getByRole('button', { name: 'Clear the queue' }).click();
    await dialog.getByRole('button', { name: 'Clear the queue' }).click();
    await page.getByText('No messages wait for this client').waitFor();
    await page.getByRole('link', { name: 'Queue 0', exact: true }).waitFor();
    await page.getByRole('link', { name: 'In flight 2', exact: true }).click();
    await page.getByRole('row', { name: /^1 PUBACK 1 yes/ }).waitFor();

    await fetch(`${served.base}/api/acl`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`ann:${PASSWORD}`)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ clientid: 'decided', topic: 'decided/#', action: 'pub', access: 'allow' })
    });
    const client = await broker.connect({ clientId: 'decided' });
    await client.publish('decided/a', '1', { qos: 1 });
    await page.goto(`${served.base}/client?id=decided&tab=rights`);
    await page.getByRole('row', { name: /publish decided\/a allow/ }).waitFor();
    await page.getByRole('button', { name: 'Delete these decisions' }).click();
    await dialog.getByRole('button', { name: 'Delete these decisions' }).click();
    await page.getByText('The decisions were deleted').first().waitFor();
    await page.getByRole('row', { name: /decided\/a/ }).waitFor({ state: 'detached' });
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('switches a rule off and on, and deletes it after a confirmation', async () => {
    const { rules } = served.broker;
    await rules.create({ id: 'a-rule', sql: 'SELECT * FROM "none/#"', actions: [{ name: 'do_nothing' }] });
    const tab = await served.open('rule?id=a-rule');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    for (const [name, state] of [
      ['Switch off', 'off'],
      ['Switch on', 'running']
    ]) {
      await page.getByRole('button', { name }).click();
      await dialog.getByRole('button', { name }).click();
      await page.getByRole('heading', { name: `a-rule ${state}` }).waitFor();
      assert.equal((await rules.get('a-rule'))?.isEnabled, state === 'running');
    }
    await page.getByRole('button', { name: 'Delete' }).first().click();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.notEqual(await rules.get('a-rule'), undefined);
    await page.getByRole('button', { name: 'Delete' }).first().click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('link', { name: 'hot', exact: true }).waitFor();
    assert.equal(await rules.get('a-rule'), undefined);
    assert.equal(await page.getByRole('link', { name: 'a-rule' }).count(), 0);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('gives a user another role and another password, and removes the user', async () => {
    const { users } = served.broker;
    await users.create('carl', PASSWORD);
    const tab = await served.open('access?tab=users');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const row = page.getByRole('row', { name: /^carl/ });
    await row.getByRole('button', { name: 'Role' }).click();
    await dialog.getByLabel('Role').selectOption('administrator');
    await dialog.getByRole('button', { name: 'Role' }).click();
    await page.getByRole('row', { name: /^carl administrator/ }).waitFor();
    await row.getByRole('button', { name: 'New password' }).click();
    await dialog.getByLabel(/^Password/).fill('another password');
    await dialog.getByRole('button', { name: 'Set', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    const logIn = (password: string) =>
      fetch(`${served.base}/api/users`, { headers: { authorization: `Basic ${btoa(`carl:${password}`)}` } });
    assert.deepEqual([(await logIn(PASSWORD)).status, (await logIn('another password')).status], [401, 200]);
    await row.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await row.waitFor({ state: 'detached' });
    assert.equal((await logIn('another password')).status, 401);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds a connection of streams, changes it without its secret, and deletes it', async () => {
    const tab = await served.open('stream-rules?tab=connections');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const others = dialog.getByLabel('Other properties, as JSON');
    await page.getByText('There are no connections').waitFor();
    await page.getByRole('button', { name: 'Add a connection' }).click();
    await dialog.getByLabel('Name').fill('plant');
    await others.fill('{"server":"tcp://127.0.0.1:1","password":"geheim"}');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('row', { name: /^plant mqtt/ });
    await row.waitFor();
    assert.ok(!(await page.locator('main').textContent())?.includes('geheim'));
    await row.getByRole('button', { name: 'Change' }).click();
    await dialog.getByRole('button', { name: 'Save' }).waitFor();
    assert.ok(!(await dialog.textContent())?.includes('geheim'));
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await row.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no connections').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('copies commands of curl and ctl that contain the filter of a list, and no password', async () => {
    const tab = await served.open('clients?_like_clientid=meter');
    const { page } = tab;
    await page.getByRole('link', { name: 'meter-2' }).waitFor();
    assert.equal(await copyBy(tab, 'Copy as ctl'), `embermq ctl --url=${served.base}/api clients list meter`);
    await page.getByRole('status').filter({ hasText: 'EMBERMQ_APP=ann:PASSWORD' }).waitFor();
    const curl = await copyBy(tab, 'Copy as curl');
    assert.equal(curl, `curl -u ann '${served.base}/api/clients?_like_clientid=meter'`);
    await page.goto(`${served.base}/clients?_like_clientid=meter&conn_state=connected`);
    assert.equal(
      await copyBy(tab, 'Copy as ctl'),
      `embermq ctl --url=${served.base}/api call GET '/clients?_like_clientid=meter&conn_state=connected'`
    );
    await page.goto(`${served.base}/clients?_like_clientid=meter&sort=sent`);
    assert.equal(
      await copyBy(tab, 'Copy as ctl'),
      `embermq ctl --url=${served.base}/api clients busiest --by=sent --places=100 meter`
    );
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('turns the pages of a list, forward, to the first one and back', async () => {
    for (let at = 100; at < 205; at++) await served.broker.connect({ clientId: `paged-${at}` });
    const tab = await served.open('clients?_like_clientid=paged-');
    const { page } = tab;
    const rows = page.locator('tbody tr');
    const idsOf = () => page.locator('tbody a[href*="client?id="]').allTextContents();
    await page.getByText(/^1 to 100\b/).waitFor();
    assert.equal(await rows.count(), 100);
    const first = await idsOf();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText(/^(101 to 105\b|5 rows)/).waitFor();
    assert.equal(await rows.count(), 5);
    assert.equal(new Set([...first, ...(await idsOf())]).size, 105);
    assert.equal(await page.getByRole('link', { name: 'Next page' }).count(), 0);
    await page.reload();
    await page.getByText(/^(101 to 105\b|5 rows)/).waitFor();
    await page.getByRole('link', { name: 'First page' }).click();
    await page.getByText(/^1 to 100\b/).waitFor();
    assert.deepEqual(await idsOf(), first);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
