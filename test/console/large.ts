// The console of a large broker: CONSOLE_CLIENTS clients and CONSOLE_TOPICS topics, by default 2,000 and 50,000.
import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { visit } from './browser.ts';
import { CLIENTS, crowd, describeConsole, IS_LONG, SITES } from './setup.ts';
import { VIEWS } from './views.ts';

/** Maximum number of elements of a view, of which the rows are most. */
const MAX_ELEMENTS = 8_000;

const countText = (count: number) => count.toLocaleString('en');

describeConsole(
  'The console of a large broker',
  (served) => {
    before(() => crowd(served.broker));

    it('opens each view with no more elements than a reader looks at', async () => {
      const tab = await served.open('');
      for (const view of VIEWS) {
        await visit(tab, `${served.base}/${view}`);
        const elements = await tab.page.evaluate<number>('document.querySelectorAll("*").length');
        assert.ok(elements < MAX_ELEMENTS, `${view} has ${elements} elements`);
      }
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('counts the clients, finds one of them and opens it', async () => {
      const tab = await served.open('clients');
      const { page } = tab;
      const last = `device-${CLIENTS - 1}`;
      await page
        .getByText(new RegExp(`of ${countText(served.broker.sessions.count)}`))
        .first()
        .waitFor();
      await page.goto(`${served.base}/clients?_like_clientid=${last}`);
      await page.getByRole('link', { name: last, exact: true }).click();
      await page.getByRole('heading', { name: last }).waitFor();
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Find' }).fill(last);
      await page.getByRole('option', { name: `Client ${last}` }).waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('opens a topic below many levels, and scrolls the tree to it', async () => {
      const tab = await served.open(`topics?topic=site-${SITES - 1}%2Fdevice-0%2Fstate`);
      await tab.page.getByRole('treeitem', { name: 'state retained' }).waitFor();
      await tab.page.locator('.detail pre', { hasText: '21' }).waitFor();
      await tab.page.getByRole('tree').focus();
      await tab.page.keyboard.press('End');
      await tab.page.getByRole('treeitem', { name: 'Show more' }).waitFor();
      const rows = await tab.page.getByRole('treeitem').count();
      assert.ok(rows > 10 && rows <= 200, `${rows} rows`);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });
  },
  { isAlone: IS_LONG }
);
