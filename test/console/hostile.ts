// Names that are markup, change the direction of text, are blank, or fill the width of any page: they are text, in every view that has names.
import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { settled } from './browser.ts';
import { describeConsole, HOSTILE_NAMES } from './setup.ts';

const [MARKUP] = HOSTILE_NAMES;
/** The longest client id that MQTT allows. */
const LONGEST = 'y'.repeat(65_535);
/** Many characters that no font has: where it draws them, a browser searches the fonts for each. */
const EMOJI = Array.from({ length: 15_000 }, (_, at) => String.fromCodePoint(0x1f300 + (at % 700))).join('');
const NAMES = [...HOSTILE_NAMES, LONGEST, EMOJI];

/** Views with names that clients and people have chosen. The second part is shown in the view. */
const VIEWS: readonly (readonly [path: string, shown?: string])[] = [
  ['clients?_like_clientid=onerror', MARKUP],
  ['clients'],
  [`client?id=${encodeURIComponent(MARKUP)}`, MARKUP],
  [`client?id=${encodeURIComponent(MARKUP)}&tab=subscriptions`, MARKUP],
  [`client?id=${encodeURIComponent(MARKUP)}&tab=history`, MARKUP],
  [`topics?topic=${encodeURIComponent(`${MARKUP}/state`)}`, MARKUP],
  ['topics'],
  [`tail?filter=${encodeURIComponent(MARKUP)}`],
  [`why?topic=${encodeURIComponent(MARKUP)}&client=${encodeURIComponent(MARKUP)}`],
  [`access?clientid=${encodeURIComponent(MARKUP)}&action=publish&topic=${encodeURIComponent(MARKUP)}`],
  ['access?tab=rules', MARKUP],
  ['access?tab=bans', MARKUP],
  ['access?tab=users', MARKUP],
  ['rules', MARKUP],
  ['rule?id=hostile'],
  ['alarms'],
  ['']
];

describeConsole('Hostile names in the console', (served) => {
  before(async () => {
    const { broker } = served;
    const longest = await broker.connect({ clientId: LONGEST });
    await longest.subscribe(`${MARKUP}/+`, { qos: 1 });
    await broker.connect({ clientId: EMOJI });
    for (const name of HOSTILE_NAMES) {
      if (!broker.sessions.has(name)) await broker.connect({ clientId: name });
      await broker.publish(`${name.slice(0, 1_000).replaceAll('#', '')}/state`, name, { retain: true });
      await broker.access.banned.add({ kind: 'clientId', who: `${name}!`, reason: name });
    }
    await broker.rules.create({
      id: 'hostile',
      description: MARKUP,
      sql: `SELECT * FROM "${'onerror'}/#"`,
      actions: []
    });
    const api = (path: string, body: object) =>
      fetch(`${served.base}/api${path}`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('ann:a password')}`, 'content-type': 'application/json' },
        body: JSON.stringify(body)
      }).then(async (answer) => assert.ok(answer.ok, await answer.text()));
    await api('/acl', { clientid: MARKUP, topic: `${MARKUP}/#`, action: 'pub', access: 'allow' });
    await api('/users', { username: MARKUP, password: 'a long password', tags: 'viewer' });
  });

  it('shows them as text in each view, within its width', async () => {
    const tab = await served.open('');
    const { page } = tab;
    for (const [path, shown] of VIEWS) {
      await page.goto(`${served.base}/${path}`);
      await settled(tab);
      if (shown !== undefined) {
        const name = page.locator('main').getByText(shown).filter({ visible: true });
        await assert.doesNotReject(name.first().waitFor(), path);
      }
      assert.equal(await page.locator('main img').count(), 0, path);
      const width = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      assert.ok(width <= 0, `${path} is ${width} pixels wider than the window`);
    }
    assert.equal(await page.evaluate('globalThis.hacked'), undefined);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('opens and kicks each client from the list, also with an id that is too long for an address', async () => {
    const tab = await served.open('clients');
    const { page } = tab;
    for (const name of NAMES) {
      await page.goto(`${served.base}/clients`);
      await page.locator(`main a[href*="client?id="]`).first().waitFor();
      const links = page.locator('main tbody a');
      const ids = await links.evaluateAll((found) => found.map((one) => one.getAttribute('href') ?? ''));
      const texts = await links.allTextContents();
      const index = ids.findIndex((href, at) =>
        name.length > 1_000 // the address has a part of the name
          ? texts[at].startsWith(name.slice(0, 40))
          : new URL(href, served.base).searchParams.get('id') === name
      );
      assert.ok(index >= 0, `${name.slice(0, 40)} is not in the list`);
      await links.nth(index).click();
      await page.getByRole('button', { name: 'Kick' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Kick' }).click();
      await page.getByText('There is no session with this client id').waitFor();
      assert.equal(served.broker.sessions.has(name), false);
    }
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
