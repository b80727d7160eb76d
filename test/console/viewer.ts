// A viewer who tries everything that the pages offer.
import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { exportConfiguration } from 'embermq';
import { reopen, settled, type Tab, visit } from './browser.ts';
import { describeConsole } from './setup.ts';
import { fillViews, VIEWS } from './views.ts';

/** Requests that only read, although their method is one of changes. */
const READING =
  /^PUT \/live\/|^POST \/api\/x\/(rules|sql)\/validate$|^POST \/streams\/(rules\/validate|x\/rules\/validate|ruletest.*)$/;
/** Further requests that only read: logins are checked, and statements run. */
const READING_BY_HAND =
  /^POST \/(api\/auth|api\/x\/rules\/validate|streams\/(|rules\/validate|x\/rules\/validate|ruletest))$/;
/** Maximum number of buttons of a view: a list has the same ones in each row. */
const MAX_BUTTONS = 80;

/** Press the first button with a label that was not pressed before. The result is its label. */
const pressNext = (pressed: readonly string[]) => `
  (() => {
    const labelOf = (button) => button.ariaLabel ?? button.textContent ?? '';
    const next = [...document.querySelectorAll('main button:enabled, [role=dialog] button:enabled')]
      .find((button) => !${JSON.stringify(pressed)}.includes(labelOf(button)));
    const label = next && labelOf(next);
    next?.click();
    return label;
  })()
`;

/** Press each button of a view that can be pressed, and those that are there afterwards. */
async function pressAll(tab: Tab, base: string, view: string): Promise<string[]> {
  const { page } = tab;
  const url = `${base}/${view}`;
  const pressed: string[] = [];
  await reopen(tab, base, view);
  while (pressed.length < MAX_BUTTONS) {
    const label = await page.evaluate<string | undefined>(pressNext(pressed));
    if (label === undefined) return pressed;
    pressed.push(label);
    await settled(tab);
    if (page.url() !== url) await visit(tab, url);
  }
  return pressed;
}

/** Send each request that changes something, as the page would. The result: those that were not refused. */
const REQUESTS_BY_HAND = `
  (async () => {
    const found = [];
    let count = 0;
    for (const mount of ['api', 'streams']) {
      const { paths } = await (await fetch('/base/console/' + mount + '/openapi.json')).json();
      for (const [path, methods] of Object.entries(paths))
        for (const method of Object.keys(methods)) {
          const name = method.toUpperCase() + ' /' + mount + path;
          if (method === 'get' || ${READING_BY_HAND}.test(name)) continue;
          const { status } = await fetch('/base/console/' + mount + path.replace(/\\{[^}]+\\}/g, 'hot'), {
            method: method.toUpperCase(),
            headers: { 'content-type': 'application/json', 'embermq-console': 'person' },
            body: '{}'
          });
          count++;
          if (status !== 403) found.push(name + ' ' + status);
        }
    }
    return count < 80 ? ['only ' + count + ' requests'] : found;
  })()
`;

describeConsole('A viewer of the console', (served) => {
  before(() => fillViews(served.broker));

  it('can press no button that changes something or is refused', async () => {
    const first = await exportConfiguration(served.broker);
    const tab = await served.open('', 'bob', {});
    const { page } = tab;
    const wrong: string[] = [];
    page.on('response', (response) => {
      const name = `${response.request().method()} ${new URL(response.url()).pathname.slice('/base/console'.length)}`;
      if (response.status() === 403 || !(name.startsWith('GET ') || READING.test(name)))
        wrong.push(`${new URL(page.url()).pathname}: ${name} ${response.status()}`);
    });
    let count = 0;
    for (const view of VIEWS) count += (await pressAll(tab, served.base, view)).length;
    assert.ok(count > 30, `${count} buttons`);
    assert.deepEqual(wrong, []);
    assert.deepEqual((await exportConfiguration(served.broker)).sections, first.sections);
    const allowed = await page.evaluate<string[]>(REQUESTS_BY_HAND);
    assert.deepEqual(allowed, []);
    assert.deepEqual((await exportConfiguration(served.broker)).sections, first.sections);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('reads at each button that is not for viewers why it cannot be pressed', async () => {
    const tab = await served.open('client?id=meter-1', 'bob');
    for (const view of ['client?id=meter-1', 'access?tab=rules', 'access?tab=users', 'rule?id=hot', 'stream-rule']) {
      await reopen(tab, served.base, view);
      const prevented = tab.page.locator('main button:is(:disabled, [aria-disabled="true"])');
      await prevented.first().waitFor();
      const buttons = await prevented.evaluateAll((found) =>
        found.map((one) => [one.textContent, one.getAttribute('title')])
      );
      for (const [label, title] of buttons) assert.match(`${title}`, /administrator/, `"${label}" of ${view}`);
    }
    const [prevented] = await tab.page.locator('main button[aria-disabled="true"]').all();
    await prevented.focus();
    for (let count = 0; count < 2; count++) await tab.page.keyboard.press('Enter');
    await tab.page.locator('.notice', { hasText: 'Only administrators' }).waitFor();
    await tab.close();
  });
});
