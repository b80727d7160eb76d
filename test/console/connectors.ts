// The pages of webhooks and bridges in a real browser.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { bridges } from 'embermq/bridge';
import { webHook, webhook, webhooks } from 'embermq/webhook';
import { describeConsole } from './setup.ts';

/** A web server that accepts each event. */
async function receiver() {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    for await (const chunk of request) bodies.push(`${chunk}`);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`, bodies, server };
}

describeConsole(
  'Webhooks and bridges in the console',
  (served) => {
    it('adds a webhook, shows that events are sent, changes it without its secret, stops and deletes it', async () => {
      const { url, bodies, server } = await receiver();
      const tab = await served.open('webhooks');
      const { page } = tab;
      const dialog = page.getByRole('dialog');
      await page.getByText('There are no webhooks').waitFor();
      await page.getByRole('button', { name: 'Add a webhook' }).click();
      await dialog.getByLabel(/^Name/).fill('audit');
      await dialog.getByLabel(/^URL/).fill(url);
      await dialog.getByLabel(/^Events/).fill('client.connected\nclient.explodes');
      await dialog.getByLabel('Key of the signature').fill('a key of at least 24 characters');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await dialog.getByRole('alert').filter({ hasText: 'client.explodes' }).waitFor();
      await dialog.getByLabel(/^Events/).fill('client.connected\nmessage.publish rooms/#');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByRole('link', { name: 'audit' }).click();
      await page.getByText('event message.publish, topic rooms/#').waitFor();
      const client = await served.broker.connect({ clientId: 'reported' });
      await page.getByRole('heading', { name: 'audit working' }).waitFor();
      await page.locator('.facts > div', { hasText: /^Sent1$/ }).waitFor();
      assert.match(bodies.join(), /"action":"client_connected","clientid":"reported"/);
      await page.getByRole('button', { name: 'Send a test event' }).click();
      await dialog.getByRole('button', { name: 'Send', exact: true }).click();
      await dialog.getByText(/Status 200 after/).waitFor();
      assert.match(bodies.join(), /"action":"webhook_test","test":true,"webhook":"audit"/);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Change' }).click();
      assert.equal(await dialog.getByLabel('Key of the signature').inputValue(), '');
      await dialog.getByLabel(/^Events/).fill('client.disconnected');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await page.getByText('event client.disconnected').waitFor();
      await client.disconnect();
      await page.locator('.facts > div', { hasText: /^Sent1$/ }).waitFor();
      assert.equal(served.broker.connectors.get('webhook', 'audit')?.settings?.secret, '******');
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      await page.getByRole('button', { name: 'Send a test event' }).click();
      await dialog.getByRole('button', { name: 'Send', exact: true }).click();
      await dialog.getByText(/not accepted.*No answer after/).waitFor();
      await dialog.getByText('ECONNREFUSED').waitFor();
      await dialog.getByText('Close', { exact: true }).click();
      await page.getByRole('button', { name: 'Stop' }).click();
      await dialog.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('heading', { name: 'audit stopped' }).waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('There are no webhooks').waitFor();
      assert.deepEqual(served.broker.connectors.list('webhook'), []);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('shows why a bridge is not connected, and what waits for it', async () => {
      const tab = await served.open('bridges');
      const { page } = tab;
      const dialog = page.getByRole('dialog');
      await page.getByRole('button', { name: 'Add a bridge' }).click();
      await dialog.getByLabel(/^Name/).fill('cloud');
      await dialog.getByLabel(/^Server/).fill('mqtt://127.0.0.1:1');
      await dialog.getByLabel('Password').fill('not to be shown');
      await dialog.getByLabel('Topics sent to the server').fill('rooms/#\n{"filter": "halls/#", "qos": 0}');
      await dialog.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByRole('row', { name: /cloud.*ECONNREFUSED.*not connected/ }).waitFor();
      await served.broker.publish('rooms/1', 'warm', { qos: 1 });
      await page.getByRole('link', { name: 'cloud' }).click();
      await page.locator('.facts > div', { hasText: /^Waiting messages1$/ }).waitFor();
      await page.getByText('filter halls/#, qos 0').waitFor();
      assert.equal((await page.locator('main').textContent())?.includes('not to be shown'), false);
      await served.broker.connectors.delete('bridge', 'cloud');
      await page.getByText('There is no bridge with this name').waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('does not let a viewer change one, and no one change one that the app has made', async () => {
      const { url, server } = await receiver();
      const ofApp = webhook(served.broker, { name: 'of-app', url });
      for (const person of ['ann', 'bob']) {
        const tab = await served.open('webhooks?name=of-app', person);
        const disabled = async (name: string) => tab.page.getByRole('button', { name, exact: true }).isDisabled();
        await tab.page.getByText('The app or the configuration of the process has made it').waitFor();
        assert.deepEqual(await Promise.all(['Change', 'Delete', 'Stop'].map(disabled)), [true, true, person === 'bob']);
        assert.deepEqual(tab.faults, []);
        await tab.close();
      }
      ofApp.close();
      server.close();
    });
  },
  { connectors: [webhooks(), bridges()], rules: { resources: [webHook()] } }
);
