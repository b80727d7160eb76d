// All views in all looks: both themes, and a phone.
import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { reopen, settled } from './browser.ts';
import { describeConsole, IS_LONG, seriousFindings } from './setup.ts';
import { fillViews, VIEWS } from './views.ts';

/** The looks in which views are checked: by axe each view in one of them, unless CONSOLE_LONG is 1. */
const LOOKS = [
  { colorScheme: 'light', size: { width: 390, height: 844 } },
  { colorScheme: 'light', size: { width: 1280, height: 800 } },
  { colorScheme: 'dark', size: { width: 1280, height: 800 } }
] as const;

describeConsole('The looks of all views', (served) => {
  before(() => fillViews(served.broker));

  it('shows each view without errors, requests to other servers and serious findings of axe, in both themes and on a phone', async () => {
    const [PHONE] = LOOKS;
    const tab = await served.open('', 'ann', { viewport: PHONE.size });
    const { page } = tab;
    for (const [at, view] of VIEWS.entries()) {
      // opened on the phone: some of what a view does depends on the width that it is opened with
      for (const [look, { colorScheme, size }] of LOOKS.entries()) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        if (look > 0) await settled(tab);
        else await reopen(tab, served.base, view);
        const name = `${view} ${colorScheme} ${size.width}`;
        if (IS_LONG || at % LOOKS.length === look) assert.deepEqual(await seriousFindings(tab), [], name);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        assert.ok(width <= 0, `${name} is ${width} pixels wider than the window`);
      }
    }
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
