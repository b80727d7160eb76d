// The pages of the settings in a real browser: options, features, listeners, the node.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { listen } from 'embermq/net';
import { describeConsole } from './setup.ts';

describeConsole('The settings in the console', (served) => {
  it('finds an option, changes it with a value that the broker accepts, and resets it', async () => {
    const tab = await served.open('options');
    const { page } = tab;
    await page.getByLabel('Search').fill('sys_INTERVAL');
    const row = page.getByRole('row', { name: /^broker\.sys_interval/ });
    await page.getByRole('row', { name: /^acl_nomatch/ }).waitFor({ state: 'detached' });
    await row.getByRole('button', { name: 'Change' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Value').fill('soon');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'soon' }).waitFor();
    await dialog.getByLabel('Value').fill('90s');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('broker.sys_interval was changed').waitFor();
    await row.getByText('at run time').waitFor();
    await row.getByText('default: 1m').waitFor();
    assert.equal(served.broker.configuration.get('sysInterval').value, 90_000);
    await row.getByRole('button', { name: 'Reset' }).click();
    await dialog.getByRole('button', { name: 'Reset' }).click();
    await page.getByText('broker.sys_interval was reset').waitFor();
    assert.equal(served.broker.configuration.get('sysInterval').source, 'default');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('offers the permitted values of an option, and says how one is changed that is read at the start', async () => {
    const tab = await served.open('options?q=shared_subscription_strategy');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Value').selectOption('round_robin');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('was changed').waitFor();
    assert.equal(served.broker.configuration.get('sharedSubscriptionStrategy').value, 'round_robin');
    await page.goto(`${served.base}/options?q=password_cost&when=restart`);
    await page.getByRole('button', { name: 'How to change' }).click();
    for (const place of ['--password-cost', 'EMBERMQ_PASSWORD_COST', '"passwordCost": ...'])
      await dialog.getByText(place).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('switches a feature off and on, after a sentence that says what stops', async () => {
    const tab = await served.open('features');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    const row = page.getByRole('row', { name: /^Retained messages/ });
    await row.getByRole('link', { name: /^\d+ retained messages$/ }).waitFor();
    await row.getByRole('button', { name: 'Switch off' }).click();
    await dialog.getByText('new subscriptions do not receive them').waitFor();
    await dialog.getByRole('button', { name: 'Switch off' }).click();
    await page.getByText('Retained messages: switched off.').waitFor();
    assert.equal(served.broker.features.list().find(({ name }) => name === 'retainer')?.isStarted, false);
    await row.getByRole('button', { name: 'Switch on' }).click();
    await dialog.getByRole('button', { name: 'Switch on' }).click();
    await page.getByText('Retained messages: switched on.').waitFor();
    assert.equal(served.broker.features.list().find(({ name }) => name === 'retainer')?.isStarted, true);
    const own = page.getByRole('row', { name: /^Management interface/ }).getByRole('button');
    assert.equal(await own.isDisabled(), true);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('lists the listeners with their connections, and says how one is added', async () => {
    const tab = await served.open('listeners');
    await tab.page.getByText('The broker has no listeners').waitFor();
    const { port } = await listen(served.broker, 0);
    await tab.page.reload();
    const row = tab.page.getByRole('row', { name: `127.0.0.1:${port} MQTT open 0` });
    await row.waitFor();
    await tab.page.getByText('--mqtt-port').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows the process with its version and its store', async () => {
    const tab = await served.open('node', 'bob');
    await tab.page.getByText(`embermq ${served.broker.version}`, { exact: true }).first().waitFor();
    await tab.page.getByText('The state is kept in memory only').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows viewers the options, and does not let them change one', async () => {
    const tab = await served.open('options?q=max_inflight', 'bob');
    const button = tab.page.getByRole('button', { name: 'Change' }).first();
    await button.waitFor();
    assert.equal(await button.isDisabled(), true);
    assert.match((await button.getAttribute('title')) ?? '', /Only administrators/);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
