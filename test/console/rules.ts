// The resources of rules in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { webHook } from '../../adapters/webhook/index.ts';
import { startConsole } from '../support/dashboard.ts';
import { logIn, openTab } from './browser.ts';
import { describeConsole, seriousFindings } from './setup.ts';

describeConsole('Rules', (served) => {
  it('adds a resource whose target can be reached, changes, checks and deletes it, and lets viewers add none', async () => {
    const without = await served.open('rules?tab=resources', 'bob');
    await without.page.getByText('No types of resources are registered').waitFor();
    assert.equal(await without.page.getByRole('button', { name: 'Add a resource' }).isDisabled(), true);
    await without.close();
    await using server = await startConsole({}, { rules: { resources: [webHook()] } });
    const base = `http://127.0.0.1:${server.port}`;
    const tab = await openTab(`${base}/rules?tab=resources`);
    await logIn(tab, 'ann');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByText('There are no resources').waitFor();
    await page.getByRole('button', { name: 'Add a resource' }).click();
    await dialog.getByLabel('Id').fill('target');
    await dialog.getByLabel(/URL/).first().fill('http://127.0.0.1:1/');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'Test Creating Resource Failed' }).waitFor();
    assert.equal(await server.broker.rules.resources.get('target'), undefined);
    await dialog.getByLabel(/URL/).first().fill(`${base}/`);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'target' }).waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    await page.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Description').fill('my target');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('my target').waitFor();
    await page.getByRole('button', { name: 'Check' }).click();
    await dialog.getByRole('button', { name: 'Check' }).click();
    await page.getByText('The target can be reached').waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no resources').waitFor();
    // the test of the target that cannot be reached
    assert.deepEqual(
      tab.faults.map((fault) => /status of 500/.test(fault)),
      [true]
    );
    await tab.close();
  });
});
