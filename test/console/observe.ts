// The pages that show topics, clients and messages, in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
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
    const tab = await served.open('');
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
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).search, '?id=to+kick');
    assert.equal(served.broker.sessions.has('to kick'), true);
    await find('kick to k', 'Kick to kick');
    await dialog.getByRole('button', { name: 'Kick' }).press('Enter');
    await page.getByText('There is no session with this client id').waitFor();
    assert.equal(served.broker.sessions.has('to kick'), false);
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
});
