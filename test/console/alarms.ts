// Alarms in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeConsole } from './setup.ts';

describeConsole('Alarms in the console', (served) => {
  it('shows an alarm when it is raised, with its cause, and keeps it in the history when it ends', async () => {
    const tab = await served.open('alarms');
    const { page } = tab;
    const { alarms } = served.broker;
    await page.getByText('There are no alarms').waitFor();
    alarms.raise({
      id: 'flapping_detected:a/<b>',
      severity: 'error',
      title: '<i>Flapping</i>',
      summary: 'It comes and goes'
    });
    const row = page.getByRole('row', { name: 'flapping_detected:a/<b>' });
    for (const text of ['error', '<i>Flapping</i>', 'It comes and goes']) await row.getByText(text).first().waitFor();
    await row.getByRole('link', { name: 'Client' }).click();
    await page.getByRole('heading', { name: 'a/<b>' }).waitFor();
    await page.goBack();
    await row.waitFor();
    alarms.clear('flapping_detected:a/<b>');
    await row.getByText('ended').waitFor();
    await page.getByRole('link', { name: 'Past' }).click();
    await row.waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('keeps the rows in their places while alarms are raised and end, and shows the changes on request', async () => {
    const { alarms } = served.broker;
    for (const door of [1, 2, 3]) alarms.raise({ id: `door:${door}`, title: `Door ${door} is open` });
    const tab = await served.open('alarms');
    const { page } = tab;
    const row = (door: number) => page.getByRole('row', { name: `door:${door}` });
    await row(2).waitFor();
    assert.equal(await row(2).getByRole('link').count(), 0, 'an alarm of the app');
    const places = () => Promise.all([1, 2, 3].map(async (door) => (await row(door).boundingBox())?.y));
    const before = await places();
    alarms.raise({ id: 'door:0', severity: 'critical', title: 'Door 0 is open' });
    alarms.clear('door:1');
    const show = page.getByRole('button', { name: 'Show changes: 1 new, 1 ended' });
    await show.waitFor();
    assert.equal(await row(0).count(), 0);
    await row(1).getByText('ended').waitFor();
    assert.deepEqual(await places(), before);
    await show.click();
    await row(0).waitFor();
    assert.equal(await row(1).count(), 0);
    assert.equal(await show.count(), 0);
    assert.deepEqual(tab.faults, []);
    await tab.close();
    for (const door of [0, 2, 3]) alarms.clear(`door:${door}`);
  });
});
