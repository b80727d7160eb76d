// Traces in a real browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { describeConsole } from './setup.ts';

describeConsole('Traces in the console', (served) => {
  it('starts a trace, shows its lines as they come, and keeps them in place while one is read', async () => {
    const tab = await served.open('traces');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByText('There are no traces').waitFor();
    await page.getByRole('button', { name: 'New trace' }).click();
    await dialog.getByRole('button', { name: 'Start the trace' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'give at least one of' }).waitFor();
    await dialog.getByLabel('Client id').fill('<b>traced</b>');
    await dialog.getByLabel('Topic filter').fill('traced/#');
    await dialog.getByLabel('Duration').selectOption('3600');
    await dialog.getByRole('button', { name: 'Start the trace' }).click();
    await page.getByRole('link', { name: 'Lines of trace' }).click();
    await page.getByText('No lines yet').waitFor();
    const client = await served.broker.connect({ clientId: '<b>traced</b>' });
    await client.publish('traced/a', 'first', { qos: 1 });
    const published = page.getByRole('button', { name: 'message.publish' });
    await page
      .getByRole('row', { name: /\d\d:\d\d:\d\d\.\d{3} message\.publish <b>traced<\/b> traced\/a .*first/ })
      .waitFor();
    await published.click();
    await page.locator('.below', { hasText: '"payload": "first"' }).waitFor();
    await client.publish('traced/a', 'second', { qos: 1 });
    await page.getByText(/newer rows? waits?/).waitFor();
    assert.equal(await published.count(), 1);
    await page.getByRole('button', { name: 'Resume' }).click();
    await published.nth(1).waitFor();

    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as JSON lines' }).click();
    const saved = readFileSync(await (await saving).path(), 'utf8')
      .trim()
      .split('\n');
    const payloads = saved.map((line) => JSON.parse(line)).filter(({ event }) => event === 'message.publish');
    assert.deepEqual(
      payloads.map(({ payload }) => payload),
      ['first', 'second']
    );

    await page.reload();
    await published.nth(1).waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('row', { name: /<b>traced<\/b>.*stopped/ }).waitFor();
    await client.publish('traced/a', 'third', { qos: 1 });
    await page.reload();
    await published.nth(1).waitFor();
    assert.equal(await published.count(), 2);
    assert.equal(await page.getByRole('button', { name: 'Stop', exact: true }).count(), 0);
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no traces').waitFor();
    assert.deepEqual(served.broker.monitor.traces.list(), []);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('keeps the last 1,000 lines of a longer trace, shows the newest 200, and says so', async () => {
    const { traces } = served.broker.monitor;
    const { id } = traces.start({ clientId: 'busy', durationMs: 60_000 });
    const client = await served.broker.connect({ clientId: 'busy' });
    const written = () => traces.get(id)?.lines ?? 0;
    let last = 0;
    while (written() < 1_500) await client.publish('busy/topic', `message ${++last}`, { qos: 1 });
    const missing = (written() - 1_000).toLocaleString('en');
    const tab = await served.open(`traces?id=${id}`);
    const { page } = tab;
    const view = page.getByRole('region', { name: `Lines of trace ${id}` });
    await view.getByText('1,000 rows, at most the last 1,000').waitFor();
    await view.getByText('The newest 200 are shown').waitFor();
    await view.getByText(`${missing} lines are missing`).waitFor();
    await view
      .getByRole('cell', { name: `message ${last}`, exact: true })
      .first()
      .waitFor();
    assert.equal(await view.locator('tbody tr').count(), 200);
    const saving = page.waitForEvent('download');
    await view.getByRole('button', { name: 'Save as JSON lines' }).click();
    const saved = readFileSync(await (await saving).path(), 'utf8')
      .trim()
      .split('\n');
    assert.equal(saved.length, 1_000);
    traces.delete(id);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('lets viewers watch a trace, but not start or delete one', async () => {
    const { id } = served.broker.monitor.traces.start({ clientId: 'watched', durationMs: 60_000 });
    const tab = await served.open(`traces?id=${id}`, 'bob');
    const client = await served.broker.connect({ clientId: 'watched' });
    await client.subscribe('watched/+');
    await client.publish('watched/a', 'seen by bob', { qos: 1 });
    for (const row of [
      /client\.connected watched$/,
      /from the client SUBSCRIBE.*watched\/\+/,
      /message\.publish.*watched\/a.*seen by bob/
    ])
      await tab.page.getByRole('row', { name: row }).first().waitFor();
    for (const name of ['New trace', 'Stop', 'Stop and delete']) {
      const button = tab.page.getByRole('button', { name, exact: true });
      await button.waitFor();
      assert.equal(await button.isDisabled(), true, name);
      assert.match((await button.getAttribute('title')) ?? '', /administrator/);
    }
    served.broker.monitor.traces.delete(id);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
