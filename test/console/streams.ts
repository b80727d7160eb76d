// The pages of stream rules in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { protobufFormat } from 'embermq/streams/protobuf';
import type { Page } from 'playwright-core';
import { FakePlugins } from '../streams-api/fake-plugins.ts';
import { startConsole } from '../support/dashboard.ts';
import { copyBy, logIn, openTab, reopen, settled } from './browser.ts';
import { describeConsole, type ServedConsole, seriousFindings } from './setup.ts';

/** Replace the statement in the editor. */
async function write(page: Page, sql: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Statement' }).click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(sql);
  await page.keyboard.press('Escape');
}

function declareTests(served: ServedConsole): void {
  const DEMO = 'CREATE STREAM demo (t FLOAT) WITH (DATASOURCE="sensors/+/state", FORMAT="JSON")';

  it('writes a stream rule: completion, an error at its place, a test with real messages, a sink; then watches, changes and deletes it', async () => {
    const empty = await served.open('stream-rule');
    await empty.page.getByText('A rule reads rows from a stream, and there is none yet').waitFor();
    await empty.close();
    await served.broker.streams.create(DEMO);
    const client = await served.broker.connect({ clientId: 'sensor' });
    const tab = await served.open('stream-rule');
    const { page } = tab;
    await page.locator('.cm-content', { hasText: 'FROM demo' }).waitFor();
    await page.getByLabel('Id').fill('warm');
    await write(page, 'SELECT t, nosuch(t) FROM demo');
    await page.getByRole('alert').filter({ hasText: 'Line 1, column 11: error getting function nosuch' }).waitFor();
    await page.locator('.cm-lintRange-error', { hasText: 'nosuch' }).waitFor();
    await write(page, 'SELECT t FROM demo WHERE t > 20 AND date');
    await page.keyboard.press('Control+Space');
    await page.getByRole('option', { name: 'date_calc' }).first().waitFor();
    await page.keyboard.press('Escape');
    await write(page, 'SELECT t FROM demo WHERE t > 20');
    await page.getByRole('button', { name: 'Collect real messages' }).click();
    const rows = page.getByLabel('Rows, as JSON');
    for (let tries = 0; tries < 1_000 && !(await rows.inputValue()).includes('21.25'); tries++)
      await client.publish('sensors/1/state', '{"t":21.25}', { qos: 1 });
    await client.publish('sensors/1/state', '{"t":21.75}', { qos: 1 });
    for (let tries = 0; tries < 1_000 && !(await rows.inputValue()).includes('21.75'); tries++)
      await page.evaluate('new Promise(requestAnimationFrame)');
    assert.match(await rows.inputValue(), /21\.25.*21\.75/s);
    await page.getByRole('button', { name: /^Stop \(/ }).click();
    await page.getByRole('button', { name: 'Run the test' }).click();
    await page.locator('.result', { hasText: '{"t":21.25}' }).first().waitFor();
    await page.getByRole('button', { name: 'Add a sink' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('topic required').fill('warm/sensors');
    await dialog.getByText('More fields').click();
    await dialog.getByLabel('Other properties, as JSON').fill('[1]');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'must be an object' }).waitFor();
    await dialog.getByLabel('Other properties, as JSON').fill('{"sendSingle":true}');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('heading', { name: 'warm running' }).waitFor();
    assert.deepEqual((await served.broker.streams.rules.get('warm'))?.actions, [
      { log: {} },
      { mqtt: { topic: 'warm/sensors', sendSingle: true } }
    ]);

    await client.publish('sensors/1/state', '{"t":22.5}', { qos: 1 });
    await client.publish('sensors/1/state', 'broken', { qos: 1 });
    await page.getByRole('row', { name: /source demo.*the payload is not JSON/ }).waitFor();
    await page.locator('.topology .failing', { hasText: '1 error' }).waitFor();
    await page.locator('.samples .result', { hasText: '{"t":22.5}' }).first().waitFor();
    await page.getByRole('button', { name: 'Use these rows for the test' }).click();
    for (let tries = 0; tries < 1_000 && !(await rows.inputValue()).includes('"values":{"t":22.5}'); tries++);
    assert.match(await rows.inputValue(), /"values":\{"t":22\.5\}/);
    assert.equal(await page.evaluate('document.activeElement?.tagName'), 'TEXTAREA');

    await write(page, 'SELECT t FROM nosuch');
    const answered = page.waitForResponse((response) =>
      /^PUT .*\/rules\/warm$/.test(`${response.request().method()} ${response.url()}`)
    );
    await page.getByRole('button', { name: 'Save' }).click();
    assert.equal((await answered).status(), 400);
    // the refusal of the change, or the error in the statement, which replaces it
    await page.getByRole('alert').filter({ hasText: 'fail to get stream nosuch' }).first().waitFor();
    assert.match((await served.broker.streams.rules.get('warm'))?.sql ?? '', /WHERE t > 20/);
    await write(page, 'SELECT t + 1 AS t FROM demo');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Rule warm was updated successfully').waitFor();
    await page.getByText('There are no changes').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.getByRole('button', { name: 'Copy as ctl' }).waitFor();
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('heading', { name: 'warm stopped' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Streams' }).waitFor();
    assert.equal(await served.broker.streams.rules.get('warm'), undefined);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows a stream rule to viewers, who can test a statement but change nothing, in all themes and widths', async () => {
    await served.broker.streams.rules.create({ id: 'seen', sql: 'SELECT t FROM demo', actions: [{ log: {} }] });
    for (const options of [{}, { colorScheme: 'dark' }, { viewport: { width: 390, height: 844 } }] as const) {
      const tab = await served.open('stream-rule?id=seen', 'bob', options);
      const { page } = tab;
      await page.getByRole('heading', { name: 'seen running' }).waitFor();
      for (const name of ['Save', 'Stop', 'Restart', 'Delete', 'Add a sink', 'Change', 'Remove'])
        assert.equal(await page.getByRole('button', { name, exact: true }).isDisabled(), true, name);
      await page.getByRole('button', { name: 'Run the test' }).click();
      await page.locator('.result', { hasText: '{"t":21.5}' }).waitFor();
      await page.getByRole('row', { name: /demo/ }).first().waitFor();
      assert.deepEqual(await seriousFindings(tab), []);
      assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')) <= 0);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    }
  });

  it('defines a stream, with an error at its place, writes a rule over it, and deletes it although the rule uses it', async () => {
    const tab = await served.open('stream-rules?tab=streams');
    const { page } = tab;
    await page.getByRole('link', { name: 'New stream' }).click();
    await write(page, 'CREATE STREAM rooms (t FLOT) WITH (DATASOURCE="rooms/+")');
    await page
      .getByRole('alert')
      .filter({ hasText: /Line 1, column 24:.*found "FLOT"/ })
      .waitFor();
    await page.locator('.cm-lintRange-error', { hasText: 'FLOT' }).waitFor();
    await write(page, 'SELECT * FROM rooms');
    await page.getByRole('alert').filter({ hasText: 'CREATE STREAM or CREATE TABLE is needed here' }).waitFor();
    await write(page, 'CREATE STREAM demo () WITH (DATASOURCE="rooms/+")');
    await page.getByText('There is already a stream with this name').waitFor();
    await write(page, 'CREATE STREAM rooms (t FLOAT) WITH (DATASOURCE="rooms/+")');
    await page.getByText('There is already a stream').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('link', { name: 'rooms' }).click();
    await page.getByRole('cell', { name: 'float' }).waitFor();
    await write(page, 'CREATE STREAM rooms (t FLOAT, floor BIGINT) WITH (DATASOURCE="rooms/+")');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'bigint' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find' }).fill('Create a stream');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New stream' }).waitFor();
    await page.locator('.cm-content', { hasText: 'sensors/+/state' }).waitFor(); // the example, not the statement of rooms
    await page.goBack();
    await page.locator('.cm-content', { hasText: 'floor BIGINT' }).waitFor();
    await write(page, 'CREATE STREAM halls () WITH (DATASOURCE="halls")');
    await page.getByText('saving makes or replaces halls, and leaves rooms as it is').waitFor();
    page.once('dialog', (question) => void question.accept());
    await page.getByRole('link', { name: 'New rule over it' }).click();
    await page.locator('.cm-content', { hasText: 'FROM rooms' }).waitFor();
    await write(page, 'CREATE STREAM halls () WITH (DATASOURCE="halls")');
    await page.getByRole('alert').filter({ hasText: 'A rule has a SELECT statement' }).waitFor();
    await served.broker.streams.rules.create({ id: 'over', sql: 'SELECT t FROM rooms', actions: [{ log: {} }] });
    await page.goto(`${served.base}/stream?name=rooms`);
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'referenced by other rules' }).waitFor();
    await dialog.getByLabel('Delete it although rules use it').check();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Streams' }).waitFor();
    assert.equal(await served.broker.streams.get('stream', 'rooms'), undefined);
    await served.broker.streams.rules.delete('over');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('makes a table, shows its rows in a rule that joins them, and deletes it when no rule uses it', async () => {
    const { broker } = served;
    await broker.publish('labels', '{"id":1,"name":"hall"}', { retain: true });
    const tab = await served.open('stream-rules?tab=tables');
    const { page } = tab;
    await page.getByText('There are no tables').waitFor();
    await page.getByRole('link', { name: 'New table' }).click();
    await page.locator('.cm-content', { hasText: 'CREATE TABLE names' }).waitFor();
    const options = 'DATASOURCE="labels", FORMAT="JSON", TYPE="mqtt", RETAIN_SIZE="10"';
    await write(page, `CREATE TABLE labels (id BIGINT, name STRNG) WITH (${options})`);
    await page
      .getByRole('alert')
      .filter({ hasText: /Line 1, column 38:.*found "STRNG"/ })
      .waitFor();
    await write(page, `CREATE TABLE labels (id BIGINT, name STRING) WITH (${options})`);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('row', { name: /^labels mqtt labels/ }).waitFor();
    await page.getByRole('link', { name: 'labels' }).click();
    await page.getByRole('heading', { name: 'labels', exact: true }).waitFor();
    await page.getByRole('cell', { name: 'string' }).waitFor();
    await broker.streams.create('CREATE STREAM halls (id BIGINT, t FLOAT) WITH (DATASOURCE="halls", FORMAT="JSON")');
    const sql = 'SELECT halls.t, labels.name FROM halls INNER JOIN labels ON halls.id = labels.id';
    await broker.streams.rules.create({ id: 'labelled', sql, actions: [{ log: {} }] });
    await page.goto(`${served.base}/stream-rule?id=labelled`);
    await page.getByRole('heading', { name: 'labelled running' }).waitFor();
    await broker.publish('halls', '{"id":1,"t":20.5}');
    await page.locator('.samples .result', { hasText: '{"t":20.5,"name":"hall"}' }).first().waitFor();
    await page.goto(`${served.base}/stream?kind=table&name=labels`);
    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'referenced by other rules' }).waitFor();
    await broker.streams.rules.delete('labelled');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no tables').waitFor();
    assert.equal(await broker.streams.get('table', 'labels'), undefined);
    await broker.streams.delete('stream', 'halls');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds a section of a source and keeps its other properties when it is changed', async () => {
    const tab = await served.open('stream-rules?tab=sources');
    const { page } = tab;
    await page.getByRole('link', { name: 'simulator' }).click();
    await page.getByRole('cell', { name: 'Time between two rows.' }).waitFor();
    await page.getByRole('button', { name: 'Add a section' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('../fast');
    await dialog.getByLabel('Type').selectOption('simulator');
    await dialog.getByLabel('data required').fill('[{"a":1}]');
    await dialog.getByText('More fields').click();
    await dialog.getByLabel('interval').fill('10s');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'expected a name without "/"' }).waitFor();
    await dialog.getByLabel('Name').fill('<b>fast<%2Fb>');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: '<b>fast<%2Fb>' }).waitFor();
    await page.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('data required').fill('[{"a":2}]');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('[{"a":2}]').waitFor();
    const key = { kind: 'confKey', type: 'simulator', name: '<b>fast<%2Fb>' } as const;
    assert.deepEqual((await served.broker.streams.config.get(key))?.properties, { data: [{ a: 2 }], interval: '10s' });
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no sections').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('leaves the focus in the field of a person when the properties of a type come', async () => {
    const tab = await served.open('stream-rules?tab=sources');
    const { page } = tab;
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/metadata/sources/mqtt', (route) => asked.then(() => route.continue()), { times: 1 });
    const drawn = () => page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
    await page.getByRole('button', { name: 'Add a section' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').pressSequentially('pla');
    answer();
    await dialog.getByLabel('Other properties, as JSON').waitFor();
    await drawn();
    await page.keyboard.type('nt');
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'plant');
    assert.equal(await dialog.getByLabel('Other properties, as JSON').inputValue(), '');
    await dialog.getByLabel('Type').focus();
    await dialog.getByLabel('Type').selectOption('simulator');
    await dialog.getByLabel('data required').waitFor();
    await drawn();
    assert.equal(await page.evaluate('document.activeElement.name'), 'type');
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds a schema, shows its messages, changes it, and deletes it when no stream uses it', async () => {
    const tab = await served.open('stream-rules?tab=schemas&do=add');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('plant');
    await dialog.getByLabel('Content of the .proto file').fill('syntax = "proto3"; message Reading { doble t = 1; }');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'doble' }).waitFor();
    await dialog.getByLabel('Content of the .proto file').fill('syntax = "proto3"; message Reading { double t = 1; }');
    await dialog.getByRole('button', { name: 'Copy as ctl' }).waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('link', { name: 'plant' }).click();
    await page.getByText('FORMAT="protobuf", SCHEMAID="plant.Reading"').waitFor();
    await page.getByRole('button', { name: 'Change' }).click();
    await dialog.getByLabel('Content of the .proto file').fill('syntax = "proto3"; message State { double t = 1; }');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('SCHEMAID="plant.State"').waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    const { streams } = served.broker;
    await streams.create('CREATE STREAM coded () WITH (DATASOURCE="c", FORMAT="protobuf", SCHEMAID="plant.State")');
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'stream coded' }).waitFor();
    await streams.delete('stream', 'coded');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are no schemas').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('copies the commands that add a connection, with placeholders for its secrets', async () => {
    const tab = await served.open('stream-rules?tab=connections');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Add a connection' }).click();
    await dialog.getByLabel('Name').fill('plant');
    await dialog
      .getByLabel('Other properties, as JSON')
      .fill('{"server":"tcp://me:geheim@plant:1883","password":"geheim"}');
    const body = '{"id":"plant","typ":"mqtt","props":{"server":"tcp://<login>@plant:1883","password":"<password>"}}';
    assert.equal(
      await copyBy(tab, 'Copy as ctl', dialog),
      `printf %s '${body}' | embermq ctl --rules-url=${served.base}/streams stream add-connection -`
    );
    assert.match(
      await copyBy(tab, 'Copy as curl', dialog),
      /^curl -u ann -X POST .*\/base\/console\/streams\/connections$/
    );
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('exports all streams and rules to a file, and imports it after a confirmation', async () => {
    await served.broker.streams.create('CREATE STREAM exported () WITH (DATASOURCE="exported", FORMAT="JSON")');
    const tab = await served.open('stream-rules?tab=transfer');
    const { page } = tab;
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export', exact: true }).click()
    ]);
    const path = await download.path();
    await served.broker.streams.delete('stream', 'exported');
    const file = page.getByLabel('File of an export');
    await file.setInputFiles({ name: 'other.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1') });
    await page.getByRole('alert').filter({ hasText: 'not an export' }).waitFor();
    await file.setInputFiles(path);
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByRole('dialog').getByText('Those of the same names are replaced').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Import' }).click();
    await page.getByText('The file was imported').waitFor();
    assert.notEqual(await served.broker.streams.get('stream', 'exported'), undefined);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('adds and deletes plugins and functions in JavaScript, and says where there are no plugins', async () => {
    const without = await served.open('stream-rules?tab=plugins');
    await without.page.getByText('Plugins are not available here').waitFor();
    await without.close();
    await using server = await startConsole({ plugins: new FakePlugins() });
    const tab = await openTab(`http://127.0.0.1:${server.port}/stream-rules?tab=plugins`);
    await logIn(tab, 'ann');
    const { page } = tab;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Add a plugin' }).click();
    await dialog.getByLabel('Name').fill('geo');
    await dialog.getByLabel('Archive').fill('http://a/geo.txt');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'invalid uri' }).waitFor();
    await dialog.getByLabel('Archive').fill('http://a/geo.zip');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('cell', { name: 'geo' }).waitFor();
    await page.getByRole('button', { name: 'Add a function' }).click();
    await dialog.getByLabel('Name').fill('area');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'area', exact: true }).waitFor();
    assert.deepEqual(await seriousFindings(tab), []);
    await page.getByRole('row', { name: 'geo' }).getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No plugins are installed').waitFor();
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });

  it('shows viewers all parts without serious findings of axe, and lets them change nothing', async () => {
    for (const options of [{ colorScheme: 'dark' }, { viewport: { width: 390, height: 844 } }] as const) {
      const tab = await served.open('stream-rules', 'bob', options);
      const { page } = tab;
      for (const view of [
        ...['', 'streams', 'tables', 'sources&type=mqtt', 'sinks&type=mqtt', 'connections', 'schemas', 'transfer']
      ]) {
        await reopen(tab, served.base, `stream-rules?tab=${view}`);
        await page.locator('.tabs').waitFor();
        await settled(tab);
        for (const name of [/^Add/, /^Export$/, /^Import$/, /^Delete$/, /^Change$/])
          for (const button of await page.locator('main').getByRole('button', { name }).all())
            assert.equal(await button.isDisabled(), true, `${view} ${name}`);
        if ('colorScheme' in options) assert.deepEqual(await seriousFindings(tab), [], view);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        assert.ok(width <= 0, `${view} is ${width} pixels wider than the window, ${JSON.stringify(options)}`);
      }
      assert.deepEqual(tab.faults, []);
      await tab.close();
    }
  });
}

describeConsole('Streams', declareTests, {
  load: async () => ({ streams: { formats: [await protobufFormat()] } })
});
