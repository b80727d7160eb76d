// The pages of stream rules in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import { describeConsole, seriousFindings } from './setup.ts';

/** Replace the statement in the editor. */
async function write(page: Page, sql: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Statement' }).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.type(sql);
  await page.keyboard.press('Escape');
}

describeConsole('Streams', (served) => {
  const DEMO = 'CREATE STREAM demo (t FLOAT) WITH (DATASOURCE="sensors/+/state", FORMAT="JSON")';

  it('writes a stream rule: completion, an error at its place, a test with real messages, a sink; then watches, changes and deletes it', async () => {
    await served.broker.streams.create(DEMO);
    const client = await served.broker.connect({ clientId: 'sensor' });
    const tab = await served.open('stream-rule');
    const { page } = tab;
    await page.getByLabel('Id').fill('warm');
    await write(page, 'SELECT t, nosuch(t) FROM demo');
    await page.getByRole('alert').filter({ hasText: 'Line 1, column 11: error getting function nosuch' }).waitFor();
    await page.locator('.cm-lintRange-error', { hasText: 'nosuch' }).waitFor();
    await write(page, 'SELECT t FROM demo WHERE t > 20 AND date');
    await page.keyboard.press('Control+Space');
    await page.getByRole('option', { name: 'date_calc' }).first().waitFor();
    await page.keyboard.press('Escape');
    await write(page, 'SELECT t FROM demo WHERE t > 20');
    await page.getByRole('button', { name: 'Collect real messages' }).click();
    const rows = page.getByLabel('Rows, as JSON');
    for (let tries = 0; tries < 1_000 && !(await rows.inputValue()).includes('21.25'); tries++)
      await client.publish('sensors/1/state', '{"t":21.25}', { qos: 1 });
    await page.getByRole('button', { name: /^Stop \(/ }).click();
    await page.getByRole('button', { name: 'Run the test' }).click();
    await page.locator('.result', { hasText: '{"t":21.25}' }).first().waitFor();
    await page.getByRole('button', { name: 'Add a sink' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('topic required').fill('warm/sensors');
    await dialog.getByText('More fields').click();
    await dialog.getByLabel('Other properties, as JSON').fill('[1]');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'must be an object' }).waitFor();
    await dialog.getByLabel('Other properties, as JSON').fill('{"sendSingle":true}');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('button', { name: 'New rule' }).click();
    await page.getByRole('heading', { name: 'warm running' }).waitFor();
    assert.deepEqual((await served.broker.streams.rules.get('warm'))?.actions, [
      { log: {} },
      { mqtt: { topic: 'warm/sensors', sendSingle: true } }
    ]);

    await client.publish('sensors/1/state', '{"t":22.5}', { qos: 1 });
    await client.publish('sensors/1/state', 'broken', { qos: 1 });
    await page.getByRole('row', { name: /source demo.*the payload is not JSON/ }).waitFor();
    await page.locator('.topology .failing', { hasText: '1 errors' }).waitFor();
    await page.locator('.samples .result', { hasText: '{"t":22.5}' }).first().waitFor();
    await page.getByRole('button', { name: 'Use these rows for the test' }).click();
    await page.waitForFunction('document.querySelector("textarea[name=rows]").value.includes(\'"values":{"t":22.5}\')');

    await write(page, 'SELECT t FROM nosuch');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('pre.problem').filter({ hasText: 'fail to get stream nosuch' }).waitFor();
    assert.match((await served.broker.streams.rules.get('warm'))?.sql ?? '', /WHERE t > 20/);
    await write(page, 'SELECT t + 1 AS t FROM demo');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Rule warm was updated successfully').waitFor();
    await page.getByText('There are no changes').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.getByRole('button', { name: 'Copy as ctl' }).waitFor();
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('heading', { name: 'warm stopped' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Streams' }).waitFor();
    assert.equal(await served.broker.streams.rules.get('warm'), undefined);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows a stream rule to viewers, who can test a statement but change nothing, in all themes and widths', async () => {
    await served.broker.streams.rules.create({ id: 'seen', sql: 'SELECT t FROM demo', actions: [{ log: {} }] });
    for (const options of [{}, { colorScheme: 'dark' }, { viewport: { width: 390, height: 844 } }] as const) {
      const tab = await served.open('stream-rule?id=seen', 'bob', options);
      const { page } = tab;
      await page.getByRole('heading', { name: 'seen running' }).waitFor();
      for (const name of ['Save', 'Stop', 'Restart', 'Delete', 'Add a sink', 'Change', 'Remove'])
        assert.equal(await page.getByRole('button', { name, exact: true }).isDisabled(), true, name);
      await page.getByRole('button', { name: 'Run the test' }).click();
      await page.locator('.result', { hasText: '{"t":21.5}' }).waitFor();
      await page.getByRole('row', { name: /demo/ }).first().waitFor();
      assert.deepEqual(await seriousFindings(tab), []);
      assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')) <= 0);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    }
  });
});
