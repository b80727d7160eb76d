// The resources of rules in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { webHook } from '../../adapters/webhook/index.ts';
import { unreachableSink } from '../rules/app-sink.ts';
import { startConsole } from '../support/dashboard.ts';
import { logIn, openTab } from './browser.ts';
import { describeConsole, seriousFindings } from './setup.ts';

describeConsole(
  'Rules',
  (served) => {
    it('shows the counters, the state and the samples of a rule as they change, without loading it again', async () => {
      const { rules } = served.broker;
      await rules.create({
        id: 'live',
        sql: 'SELECT payload.t AS t FROM "live/+" WHERE payload.t > 20',
        actions: [{ name: 'do_nothing' }]
      });
      const client = await served.broker.connect({ clientId: 'live' });
      const tab = await served.open('rule?id=live');
      const { page } = tab;
      const asked: string[] = [];
      await page.getByRole('heading', { name: 'live running' }).waitFor();
      await page.locator('.facts > div', { hasText: /^Matched0$/ }).waitFor();
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      await client.publish('live/1', '{"t":21}', { qos: 1 });
      await page.locator('.facts > div', { hasText: /^Matched1$/ }).waitFor();
      await page.getByRole('row', { name: /do_nothing 1 1 0/ }).waitFor();
      await page.locator('.samples .result', { hasText: '"t": 21' }).first().waitFor();
      await rules.update('live', { isEnabled: false });
      await page.getByRole('heading', { name: 'live off' }).waitFor();
      await page.getByRole('button', { name: 'Switch on' }).waitFor();
      await rules.delete('live');
      await page.getByText('This rule has been deleted').waitFor();
      assert.deepEqual(
        asked.filter((path) => /\/api\/rules\b/.test(path)),
        []
      );
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('shows that an action cannot deliver in the state of the rule and beside the action, and links its alarm to the rule', async () => {
      const { rules } = served.broker;
      await rules.create({
        id: 'failing',
        sql: 'SELECT payload FROM "failing/+"',
        actions: [{ name: 'app_sink', params: { topic: 't' } }]
      });
      const tab = await served.open('rule?id=failing');
      const { page } = tab;
      await page.getByRole('heading', { name: 'failing running', exact: true }).waitFor();
      await served.broker.publish('failing/1', '1');
      await page.getByRole('heading', { name: 'failing running, an action fails' }).waitFor();
      await page.getByText(/The last delivery failed and is tried again: down/).waitFor();
      await page.locator('.warned', { hasText: '1' }).waitFor();
      assert.deepEqual(await seriousFindings(tab), []);
      await page.goto(`${new URL(page.url()).origin}${new URL(page.url()).pathname.replace(/rule$/, 'rules')}`);
      await page.getByRole('row', { name: /failing running, an action fails/ }).waitFor();
      await rules.delete('failing');
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('keeps the change of another person until the person with a draft decides, and says when nothing is left to save', async () => {
      const { rules } = served.broker;
      await rules.create({ id: 'shared', sql: 'SELECT payload FROM "shared/+"', actions: [{ name: 'do_nothing' }] });
      const tab = await served.open('rule?id=shared');
      const { page } = tab;
      const description = page.getByLabel('Description');
      await page.getByText('There are no changes').waitFor();
      await description.fill('mine');
      await rules.update('shared', { description: 'theirs', sql: 'SELECT topic FROM "shared/+"' });
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByRole('alert').filter({ hasText: 'has been changed since you opened it' }).waitFor();
      assert.equal((await rules.get('shared'))?.description, 'theirs');
      await page.getByRole('button', { name: 'Load it, without my changes' }).click();
      await page.getByText('There are no changes').waitFor();
      assert.equal(await description.inputValue(), 'theirs');
      await page.locator('.cm-content', { hasText: 'SELECT topic' }).waitFor();
      await description.fill('mine');
      await rules.update('shared', { description: 'theirs again' });
      await page.getByRole('button', { name: 'Save', exact: true }).click();
      await page.getByRole('button', { name: 'Save mine' }).click();
      await page.getByText('The rule was saved').waitFor();
      await page.getByText('There are no changes').waitFor();
      assert.equal((await rules.get('shared'))?.description, 'mine');
      await rules.delete('shared');
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('shows a viewer the change of another person, and no state and no commands of a rule that was deleted', async () => {
      const { rules } = served.broker;
      await rules.create({ id: 'watched', sql: 'SELECT payload FROM "watched"', actions: [{ name: 'do_nothing' }] });
      const tab = await served.open('rule?id=watched', 'bob');
      const { page } = tab;
      await page.locator('.cm-content', { hasText: 'SELECT payload' }).waitFor();
      await page.locator('main .badge').first().waitFor();
      await rules.update('watched', { sql: 'SELECT topic FROM "watched"' });
      await page.locator('.cm-content', { hasText: 'SELECT topic' }).waitFor();
      await rules.delete('watched');
      await page.getByText('This rule has been deleted').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Switch off' }).count(), 0);
      assert.equal(await page.locator('main h1 .badge').count(), 0);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('shows a viewer the change of another person to a stream rule, and no state of one that was deleted', async () => {
      const { streams } = served.broker;
      await streams.create('CREATE STREAM watched () WITH (DATASOURCE="watched", FORMAT="JSON")');
      await streams.rules.create({ id: 'watched', sql: 'SELECT a FROM watched', actions: [{ nop: {} }] });
      const tab = await served.open('stream-rule?id=watched', 'bob');
      const { page } = tab;
      await page.locator('.cm-content', { hasText: 'SELECT a' }).waitFor();
      await page.locator('main h1 .badge', { hasText: 'running' }).waitFor();
      await streams.rules.update('watched', { sql: 'SELECT b FROM watched', actions: [{ nop: {} }] });
      await page.locator('.cm-content', { hasText: 'SELECT b' }).waitFor();
      await streams.rules.delete('watched');
      await page.getByText('This rule has been deleted').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Stop' }).count(), 0);
      assert.equal(await page.locator('main h1 .badge').count(), 0);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('saves a rule once when a person clicks twice, and keeps what is typed while a new rule is being created', async () => {
      const { rules, streams } = served.broker;
      await streams.create('CREATE STREAM quick () WITH (DATASOURCE="quick", FORMAT="JSON")');
      for (const [address, more, label] of [
        ['rule', undefined, 'Description'],
        ['stream-rule?over=quick', 'Name, tags and options', 'Name']
      ] as const) {
        const tab = await served.open(address);
        const { page } = tab;
        let answer = () => {};
        const isAnswered = new Promise<void>((resolve) => (answer = resolve));
        const changes: string[] = [];
        await page.route(/\/rules(\/quick)?$/, async (route) => {
          const method = route.request().method();
          if (method !== 'GET') changes.push(method);
          if (method === 'POST') await isAnswered;
          await route.continue();
        });
        await page.getByLabel(/^Id/).fill('quick');
        if (more !== undefined) await page.getByText(more).click();
        const field = page.getByLabel(label, { exact: true });
        await field.fill('sent');
        const sent = page.waitForRequest((request) => request.method() === 'POST' && /rules$/.test(request.url()));
        await page.getByRole('button', { name: 'Create', exact: true }).click();
        await sent;
        await field.fill('sent, and more');
        answer();
        await page.getByRole('heading', { name: /^quick/ }).waitFor();
        if (more !== undefined) await page.getByText(more).click();
        assert.equal(await field.inputValue(), 'sent, and more');
        await page.getByRole('button', { name: 'Save', exact: true }).dblclick();
        await page.getByText('There are no changes').waitFor();
        assert.deepEqual(changes, ['POST', 'PUT']);
        assert.deepEqual(tab.faults, []);
        await tab.close();
      }
      assert.equal((await rules.get('quick'))?.description, 'sent, and more');
      assert.equal((await streams.rules.get('quick'))?.name, 'sent, and more');
      await streams.rules.delete('quick');
      await rules.delete('quick');
    });

    it('keeps what a person types in a rule while the rule is being saved', async () => {
      const { rules, streams } = served.broker;
      await rules.create({ id: 'typed', sql: 'SELECT payload FROM "typed"', actions: [{ name: 'do_nothing' }] });
      await streams.create('CREATE STREAM typed () WITH (DATASOURCE="typed", FORMAT="JSON")');
      await streams.rules.create({ id: 'typed', sql: 'SELECT * FROM typed', actions: [{ nop: {} }] });
      for (const [address, more, label] of [
        ['rule', undefined, 'Description'],
        ['stream-rule', 'Name, tags and options', 'Name']
      ] as const) {
        const tab = await served.open(`${address}?id=typed`);
        const { page } = tab;
        let answer = () => {};
        const isAnswered = new Promise<void>((resolve) => (answer = resolve));
        await page.route(/\/rules\/typed$/, async (route) => {
          if (route.request().method() === 'PUT') await isAnswered;
          await route.continue();
        });
        if (more !== undefined) await page.getByText(more).click();
        const field = page.getByLabel(label, { exact: true });
        const save = page.getByRole('button', { name: 'Save', exact: true });
        await field.fill('sent');
        const sent = page.waitForRequest((request) => request.method() === 'PUT' && /typed$/.test(request.url()));
        await save.click();
        await sent;
        await field.fill('sent, and more');
        const saved = page.getByText(/was saved|was updated/);
        answer();
        await saved.first().waitFor();
        assert.equal(await field.inputValue(), 'sent, and more');
        await page.unrouteAll();
        await save.click();
        await page.getByText('There are no changes').waitFor();
        assert.equal(await field.inputValue(), 'sent, and more');
        assert.deepEqual(tab.faults, []);
        await tab.close();
      }
      assert.equal((await rules.get('typed'))?.description, 'sent, and more');
      await streams.rules.delete('typed');
      await rules.delete('typed');
    });

    it('offers the resources that an action can use and makes one in its form, and warns of placeholders without a value', async () => {
      await using server = await startConsole({}, { rules: { resources: [webHook()] } });
      const tab = await openTab(`http://127.0.0.1:${server.port}/rule`);
      await logIn(tab, 'ann');
      const { page } = tab;
      await page.getByRole('button', { name: 'Add an action' }).click();
      const dialog = page.getByRole('dialog', { name: 'Add an action' });
      await dialog.getByText('The statement does not output payload').waitFor();
      await dialog.getByLabel(/^Target Topic/).fill('alarms/+/x');
      await dialog.getByText('The topic "alarms/+/x" has a wildcard').waitFor();
      await dialog.getByText('More fields').waitFor();
      assert.equal(await dialog.getByLabel('MQTT 5.0 properties').isVisible(), false);
      await dialog.getByLabel('Action').selectOption('data_to_webserver');
      await dialog.getByText('The action sends through a resource').waitFor();
      await dialog.getByText('More fields').click();
      await dialog.getByLabel(/^Path/).fill('/typed');
      await dialog.getByRole('button', { name: 'Add a resource' }).click();
      const inner = page.getByRole('dialog', { name: 'Add a resource' });
      await inner.getByLabel('Id').fill('target');
      await inner.getByLabel(/URL/).first().fill(`http://127.0.0.1:${server.port}/`);
      await inner.getByRole('button', { name: 'Save' }).click();
      await inner.waitFor({ state: 'detached' });
      await dialog.getByRole('option', { name: 'target' }).waitFor({ state: 'attached' });
      assert.equal(await dialog.getByLabel(/Resource ID/).inputValue(), 'target');
      assert.equal(await dialog.getByLabel(/^Path/).inputValue(), '/typed');
      await dialog.getByRole('button', { name: 'Apply' }).click();
      await page.locator('.rule-actions li', { hasText: 'Resource ID target' }).waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('asks before a link or the back button leaves a rule with changes that are not saved', async () => {
      await served.broker.rules.create({ id: 'left', sql: 'SELECT payload FROM "left"', actions: [] });
      const tab = await served.open('rules');
      const { page } = tab;
      await page.getByRole('link', { name: 'left', exact: true }).click();
      await page.getByText('There are no changes').waitFor();
      const description = page.getByLabel('Description');
      await description.fill('not saved');
      const asked: string[] = [];
      let isLeft = false;
      page.on('dialog', (dialog) => {
        asked.push(dialog.message());
        void (isLeft ? dialog.accept() : dialog.dismiss());
      });
      await page.locator('.crumbs a').click();
      await page.evaluate('history.back()');
      for (let tries = 0; tries < 1_000 && asked.length < 2; tries++) await page.evaluate('1');
      assert.equal(await description.inputValue(), 'not saved');
      assert.match(page.url(), /rule\?id=left$/);
      isLeft = true;
      await page.locator('.crumbs a').click();
      await page.getByRole('heading', { name: 'Rules', exact: true }).waitFor();
      assert.deepEqual(new Set(asked), new Set(['Your changes are not saved. Leave this page and lose them?']));
      assert.equal(asked.length, 3);
      await served.broker.rules.delete('left');
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('tests a statement with an event that has its topic and the members of the payload that it reads', async () => {
      const tab = await served.open('rule?id=hot');
      const { page } = tab;
      const event = page.getByLabel('Event, as JSON');
      for (let tries = 0; tries < 1_000 && !/^(?!.*clientid).*rooms\/1/s.test(await event.inputValue()); tries++);
      assert.deepEqual(JSON.parse(await event.inputValue()), { payload: '{"t":21}', topic: 'rooms/1' });
      await page.getByRole('button', { name: 'Run the test' }).click();
      await page.locator('.result', { hasText: '"t": 21' }).first().waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('adds a resource whose target can be reached, changes, checks and deletes it, and lets viewers add none', async () => {
      const without = await served.open('rules?tab=resources', 'bob');
      await without.page.getByText('No types of resources are registered').waitFor();
      assert.equal(await without.page.getByRole('button', { name: 'Add a resource' }).isDisabled(), true);
      await without.close();
      await using server = await startConsole({}, { rules: { resources: [webHook()] } });
      const base = `http://127.0.0.1:${server.port}`;
      const tab = await openTab(`${base}/rules?tab=resources`);
      await logIn(tab, 'ann');
      const { page } = tab;
      const dialog = page.getByRole('dialog');
      await page.getByText('There are no resources').waitFor();
      await page.getByRole('button', { name: 'Add a resource' }).click();
      await dialog.getByLabel('Id').fill('target');
      await dialog.getByLabel(/URL/).first().fill('http://127.0.0.1:1/');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.getByRole('alert').filter({ hasText: 'Test Creating Resource Failed' }).waitFor();
      assert.equal(await server.broker.rules.resources.get('target'), undefined);
      await dialog.getByLabel(/URL/).first().fill(`${base}/`);
      await dialog.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('cell', { name: 'target' }).waitFor();
      assert.deepEqual(await seriousFindings(tab), []);
      await page.getByRole('button', { name: 'Change' }).click();
      await dialog.getByLabel('Description').fill('my target');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await page.getByText('my target').waitFor();
      await page.getByRole('button', { name: 'Check' }).click();
      await dialog.getByRole('button', { name: 'Check' }).click();
      await page.getByText('The target can be reached').waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('There are no resources').waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });
  },
  { streams: { sinks: [unreachableSink()] } }
);
