// Finding the client that floods a broker, in a real browser.
import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { describeConsole, seriousFindings } from './setup.ts';
import { connectUnread } from './views.ts';

/** Time between two runs of messages of the traffic. */
const PAUSE_MS = 20;

describeConsole('Finding a client that floods', (served) => {
  let isOver = false;

  /** Publish until the tests have ended: much from `flooder`, and little from `meter-1`. */
  async function flood(): Promise<void> {
    const flooder = await served.broker.connect({ clientId: 'flooder' });
    const quiet = await served.broker.connect({ clientId: 'quiet' });
    while (!isOver) {
      for (let count = 0; count < 5; count++) await flooder.publish('rooms/1', '{"t":30}');
      await quiet.publish('rooms/2', '{"t":1}');
      await delay(PAUSE_MS);
    }
  }

  before(() => {
    // the broker of the area stops before this file knows it
    flood().catch(({ code }) => assert.equal(code, 'NOT_CONNECTED'));
  });
  after(() => {
    isOver = true;
  });

  it('shows the messages per second of the clients in view, and lists the busiest of all first when the heading is selected', async () => {
    const tab = await served.open('clients');
    const { page } = tab;
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'flooder', exact: true }) });
    const rate = (name: string) =>
      page
        .getByRole('row')
        .filter({ has: page.getByRole('link', { name, exact: true }) })
        .getByRole('cell')
        .nth(5);
    await rate('flooder')
      .filter({ hasText: /^[1-9]/ })
      .waitFor();
    await rate('meter-2').filter({ hasText: /^0$/ }).waitFor();
    await page.getByRole('link', { name: 'Msgs/s in' }).click();
    await page.getByText('At most 100 clients, the busiest first').waitFor();
    assert.equal(new URL(page.url()).searchParams.get('sort'), 'received');
    assert.deepEqual(await page.locator('tbody a[href*="client?id="]').allTextContents(), ['flooder', 'quiet']);
    await page.getByRole('columnheader', { name: 'Msgs/s in' }).and(page.locator('[aria-sort=descending]')).waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    await page.getByLabel('Client id contains').fill('qui');
    await row.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'quiet' }).waitFor();
    await page.getByRole('link', { name: 'All clients' }).click();
    await page.getByText(/^1 (row$|to 1\b)/).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('sort'), null);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows a viewer the busiest receivers from an address, and says so if there are none', async () => {
    const tab = await served.open('clients?sort=sent', 'bob');
    const { page } = tab;
    await page.getByText('No client that meets the conditions has had a message in the last second').waitFor();
    const reader = await served.broker.connect({ clientId: 'reader' });
    await reader.subscribe('rooms/#');
    await page.getByRole('button', { name: 'Measure again' }).click();
    await page.getByRole('link', { name: 'reader' }).waitFor();
    await reader.disconnect();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('names the busiest publishers beside the rows of the live tail, and the rule that has published a message', async () => {
    const tab = await served.open('tail?filter=%23');
    const { page } = tab;
    const busiest = page.getByRole('complementary', { name: 'Busiest publishers and topics' });
    await busiest.getByRole('link', { name: 'flooder' }).waitFor();
    await busiest.getByRole('listitem').filter({ hasText: 'rule hot' }).waitFor();
    const [list, rows] = await Promise.all([busiest.boundingBox(), page.locator('.tail-messages').boundingBox()]);
    assert.ok(list && rows && list.y <= rows.y + 1 && list.x >= rows.x + rows.width, 'beside the rows');
    await page.keyboard.press('Space');
    assert.deepEqual(await seriousFindings(tab), []);
    await page.locator('.tail-messages').getByRole('link', { name: 'hot', exact: true }).first().click();
    await page.getByRole('heading', { name: 'hot' }).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('id'), 'hot');
    await page.goto(`${served.base}/tail?filter=%23`);
    await page.setViewportSize({ width: 390, height: 800 });
    await busiest.getByRole('link', { name: 'flooder' }).waitFor();
    const above = (await busiest.boundingBox())?.y ?? Infinity;
    assert.ok(above < ((await page.locator('.tail-messages').boundingBox())?.y ?? 0), 'above the rows on a phone');
    assert.ok(above < 800);
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('names the client that floods in bursts, whose messages are mostly left out of the rows, and keeps the names while paused', async () => {
    const burster = await served.broker.connect({ clientId: 'burster' });
    const burst = async () => {
      for (let count = 0; count < 4_000; count++) await burster.publish('rooms/3', '{"t":1}');
    };
    const tab = await served.open('tail?filter=%23');
    const { page } = tab;
    const busiest = page.getByRole('complementary', { name: 'Busiest publishers and topics' });
    await busiest.getByRole('link', { name: 'flooder' }).waitFor();
    await burst();
    const first = busiest.getByRole('list').first().getByRole('listitem').first();
    await first.filter({ hasText: /^\d\d %burster$/ }).waitFor();
    await busiest.getByText(/^Of 4,\d{3} events in the last 10 s/).waitFor();
    await page.getByText('messages were left out').waitFor();
    await page.getByRole('button', { name: /Pause/ }).click();
    const before = await busiest.textContent();
    await burst();
    await page.getByText(/newer rows wait/).waitFor();
    assert.equal(await busiest.textContent(), before);
    await burster.disconnect();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('names the rule that has published a retained message', async () => {
    await served.broker.rules.create({
      id: 'keeper',
      sql: 'SELECT payload FROM "rooms/2"',
      actions: [
        {
          name: 'republish',
          params: { target_topic: 'kept/by/rule', payload_tmpl: 'kept', target_qos: 0, target_retain: true }
        }
      ]
    });
    const tab = await served.open('topics?topic=kept/by/rule');
    const { page } = tab;
    await page.getByRole('button', { name: 'Delete' }).or(page.getByText('has no retained message')).first().waitFor();
    await page.reload();
    await page.locator('.detail').getByRole('link', { name: 'keeper' }).waitFor();
    await served.broker.rules.delete('keeper');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('says in words why the topic of a message in flight is not known', async () => {
    await connectUnread(served.broker, 'unread', ['unread/1', 'unread/2']);
    const tab = await served.open('client?id=unread&tab=inflight');
    await tab.page.getByRole('cell', { name: 'not in memory' }).first().waitFor();
    await tab.page.getByText('not at all for a session that ends with its connection').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('finds options, parts of pages and actions of rules with the keyboard', async () => {
    await served.broker.streams.create('CREATE STREAM found (t FLOAT) WITH (DATASOURCE="found/+", FORMAT="JSON")');
    await served.broker.streams.rules.create({ id: 'found', sql: 'SELECT t FROM found', actions: [{ log: {} }] });
    const tab = await served.open('');
    const { page } = tab;
    await page.getByText(/Records begin at .*, when the broker started/).waitFor();
    const find = async (text: string, option: RegExp) => {
      await page.keyboard.press('Control+k');
      await page.locator('input[role=combobox]:focus').waitFor();
      await page.keyboard.type(text);
      await page.locator('[role=option][aria-selected=true]').filter({ hasText: option }).waitFor();
      await page.keyboard.press('Enter');
    };
    await find('bans', /Access: Bans/);
    await page.getByRole('link', { name: 'Bans' }).and(page.locator('[aria-current=page]')).waitFor();
    await find('max_packet', /Option/);
    await page
      .getByRole('row', { name: /max_packet_size/ })
      .first()
      .waitFor();
    assert.match(new URL(page.url()).searchParams.get('q') ?? '', /max_packet_size/);
    await find('stop found', /Stop found/);
    await page.getByRole('dialog', { name: 'Stop' }).waitFor();
    await page.keyboard.press('Escape');
    await find('test found', /Test found/);
    await page.locator('textarea:focus').waitFor();
    await find('disable hot', /Disable hot/);
    await page.getByRole('dialog', { name: 'Switch off' }).waitFor();
    await page.keyboard.press('Escape');
    await find('busiest', /List the busiest clients/);
    await page.getByRole('link', { name: 'flooder' }).waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('keeps the parts of a page in one line on a phone, with the shown one in view', async () => {
    const tab = await served.open('stream-rules?tab=transfer', 'ann', { viewport: { width: 390, height: 800 } });
    const tabs = tab.page.locator('.tabs');
    await tabs.locator('[aria-current=page]').waitFor();
    const [line, shown] = await Promise.all([tabs.boundingBox(), tabs.locator('[aria-current=page]').boundingBox()]);
    assert.ok(line && shown && line.height < 60 && shown.x >= 0 && shown.x + shown.width <= 390);
    assert.equal(await tab.page.evaluate('document.documentElement.scrollWidth'), 390);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
