// The pages of the settings in a real browser: options, listeners, features, webhooks, bridges.
import assert from 'node:assert/strict';
import { it } from 'node:test';
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
