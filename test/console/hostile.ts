// Names that are markup, change the direction of text, are blank, or fill the width of any page: they are text, in every view that has names.
import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { bridges } from 'embermq/bridge';
import { webhooks } from 'embermq/webhook';
import { reopen } from './browser.ts';
import { describeConsole, HOSTILE_NAMES, type ServedConsole } from './setup.ts';
import { connectUnread } from './views.ts';

const [MARKUP] = HOSTILE_NAMES;
/** The markup in an address. */
const CODED = encodeURIComponent(MARKUP);
/** The longest client id that MQTT allows. */
const LONGEST = 'y'.repeat(65_535);
/** Many characters that no font has: where it draws them, a browser searches the fonts for each. */
const EMOJI = Array.from({ length: 15_000 }, (_, at) => String.fromCodePoint(0x1f300 + (at % 700))).join('');
const NAMES = [...HOSTILE_NAMES, LONGEST, EMOJI];

/** Views with names that clients and people have chosen. The second part is shown in the view. */
const VIEWS: readonly (readonly [path: string, shown?: string])[] = [
  ['clients?_like_clientid=onerror', MARKUP],
  ['clients'],
  [`client?id=${CODED}`, MARKUP],
  [`client?id=${CODED}&tab=subscriptions`, MARKUP],
  [`client?id=${CODED}&tab=history`, MARKUP],
  [`topics?topic=${encodeURIComponent(`${MARKUP}/state`)}`, MARKUP],
  ['topics'],
  [`tail?filter=${CODED}`],
  [`why?topic=${CODED}&client=${CODED}`],
  [`access?clientid=${CODED}&action=publish&topic=${CODED}`],
  ['access?tab=rules', MARKUP],
  ['access?tab=bans', MARKUP],
  ['access?tab=users', MARKUP],
  ['rules', MARKUP],
  ['rule?id=hostile'],
  ['access?tab=apps', MARKUP],
  [`client?id=${CODED}&tab=inflight`, `unread/${MARKUP}`],
  [`client?id=${CODED}&tab=queue`, 'unread/عميل'],
  [`client?id=${CODED}&tab=chart`, MARKUP],
  [`client?id=${CODED}&tab=rights`, MARKUP],
  ['traces', `client ${MARKUP}`],
  ['traces?id=1', `unread/${MARKUP}`],
  ['stream-rules', MARKUP],
  [`stream-rule?id=${CODED}`, MARKUP],
  ['stream-rules?tab=streams', MARKUP],
  [`stream?name=${CODED}`, MARKUP],
  ['stream-rules?tab=connections', MARKUP],
  ['webhooks?name=hostile', MARKUP],
  ['bridges?name=hostile', MARKUP],
  [`webhooks?name=${CODED}`],
  ['alarms', MARKUP],
  ['']
];

/** Elements that no page has, and that a name would add. */
const ADDED = 'main :is(img, script, iframe), bdi b';
/** Maximum number of characters of a view. A name that is shown as a whole has more. */
const MAX_TEXT = 60_000;

/** Give each kind of thing that people name the markup as its name. */
async function nameThings({ broker }: ServedConsole): Promise<void> {
  broker.monitor.traces.start({ clientId: MARKUP, durationMs: 3_600_000 });
  await connectUnread(
    broker,
    MARKUP,
    HOSTILE_NAMES.map((name) => `unread/${name.replaceAll('#', '')}`)
  );
  const rules = [{ event: 'message.publish', topic: MARKUP }];
  await broker.connectors.create('webhook', { name: 'hostile', url: 'http://127.0.0.1:1/', rules });
  await broker.connectors.create('bridge', { name: 'hostile', url: 'mqtt://127.0.0.1:1', out: [{ filter: MARKUP }] });
  await broker.streams.create(`CREATE STREAM \`${MARKUP}\` (t FLOAT) WITH (DATASOURCE="hostile", FORMAT="JSON")`);
  await broker.streams.rules.create({ id: MARKUP, sql: `SELECT * FROM \`${MARKUP}\``, actions: [{ log: {} }] });
  broker.alarms.raise({ id: MARKUP, severity: 'error', title: MARKUP, summary: MARKUP });
}

describeConsole(
  'Hostile names in the console',
  (served) => {
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
      await api('/apps', { app_id: MARKUP, name: MARKUP, desc: MARKUP });
      await nameThings(served);
      const connection = { id: MARKUP, typ: 'mqtt', props: { server: 'tcp://127.0.0.1:1' } };
      await api('/../streams/connections', connection);
      await api('/users', { username: MARKUP, password: 'a long password', tags: 'viewer' });
    });

    it('shows them as text in each view, within its width', async () => {
      const tab = await served.open('');
      const { page } = tab;
      for (const [path, shown] of VIEWS) {
        await reopen(tab, served.base, path);
        if (shown !== undefined) {
          const name = page.locator('main').getByText(shown).filter({ visible: true });
          await assert.doesNotReject(name.first().waitFor(), path);
        }
        assert.equal(await page.locator(ADDED).count(), 0, path);
        const { length } = (await page.locator('main').textContent()) ?? '';
        assert.ok(length < MAX_TEXT, `${path} has ${length} characters`);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        assert.ok(width <= 0, `${path} is ${width} pixels wider than the window`);
      }
      assert.equal(await page.evaluate('globalThis.hacked'), undefined);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('shows them as text in the finder, in rows of a tail and in the packets of the WebSocket client', async () => {
      const tab = await served.open('tail?filter=hostile/%23');
      const { page } = tab;
      const writer = await served.broker.connect({ clientId: 'hostile writer' });
      const isPlain = async () => {
        assert.equal(await page.locator(ADDED).count(), 0);
        assert.equal(await page.evaluate('globalThis.hacked'), undefined);
        assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')) <= 0);
      };
      await page.getByText('Waiting for messages').waitFor();
      const row = page.getByRole('row').filter({ hasText: `hostile/${MARKUP}` });
      for (let tries = 0; tries < 1_000 && !(await row.first().isVisible()); tries++)
        for (const name of HOSTILE_NAMES) await writer.publish(`hostile/${name.replaceAll('#', '')}`, name, { qos: 1 });
      await page.getByRole('row').filter({ hasText: 'U+202Egnp.exe' }).first().waitFor();
      await row.first().getByRole('button', { name: MARKUP }).click();
      await page.locator('.below').filter({ hasText: MARKUP }).first().waitFor();
      await isPlain();

      await page.keyboard.press('Control+k');
      for (const [typed, found] of [
        ['<img', MARKUP],
        ['\u202Egnp', 'U+202Egnp.exe'],
        ['yyyy', '+ 65,435 characters'],
        ['عميل', 'عميل']
      ]) {
        await page.getByRole('combobox', { name: 'Find' }).fill(typed);
        await page.getByRole('option').filter({ hasText: found }).first().waitFor();
        assert.equal(await page.locator('dialog img, dialog script').count(), 0);
      }
      await page.keyboard.press('Escape');

      await page.goto(`${served.base}/websocket?id=${CODED}%20page`);
      await page.getByRole('button', { name: 'Connect', exact: true }).click();
      await page.getByRole('region', { name: 'Connection' }).getByText('connected', { exact: true }).waitFor();
      const subscribe = page.getByRole('region', { name: 'Subscriptions' });
      for (const filter of [`${MARKUP}/+`, '#']) {
        await subscribe.getByLabel('Topic filter').fill(filter);
        await subscribe.getByRole('button', { name: 'Subscribe', exact: true }).click();
        await subscribe.getByText(filter, { exact: true }).first().waitFor();
      }
      for (const text of [`${MARKUP}/state`, 'U+202Egnp.exe/state', 'x'.repeat(80), 'عميل/state']) {
        const packet = page.getByRole('row').filter({ hasText: text }).first();
        await packet.waitFor();
      }
      await page
        .getByRole('row')
        .filter({ hasText: `${MARKUP}/state` })
        .first()
        .getByRole('button')
        .click();
      await page.locator('.mqtt-more').filter({ hasText: MARKUP }).waitFor();
      await isPlain();
      await page.getByRole('button', { name: 'Disconnect' }).click();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('opens and kicks each client from the list, also with an id that is too long for an address', async () => {
      const tab = await served.open('clients');
      const { page } = tab;
      for (const name of NAMES) {
        await reopen(tab, served.base, 'clients');
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
  },
  { connectors: [webhooks(), bridges()], prepare: (http, { attachUpgrades }) => void attachUpgrades(http) }
);
