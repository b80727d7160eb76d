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
    alarms.raise({ id: 'door:4', title: 'Door 4 is open' });
    const row = page.getByRole('row', { name: 'flapping_detected:a/<b>' });
    for (const text of ['error', '<i>Flapping</i>', 'It comes and goes']) await row.getByText(text).first().waitFor();
    assert.equal(await page.getByRole('row', { name: 'Door 4' }).getByRole('link').count(), 0, 'an alarm of the app');
    await row.getByRole('link', { name: 'Client' }).click();
    await page.getByRole('heading', { name: 'a/<b>' }).waitFor();
    await page.goBack();
    alarms.clear('flapping_detected:a/<b>');
    await row.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Past' }).click();
    await row.waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
    alarms.clear('door:4');
  });
});
