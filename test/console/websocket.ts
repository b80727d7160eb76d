// The WebSocket client in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ClientOptions } from 'embermq';
import { PASSWORD } from '../support/dashboard.ts';
import { logIn, type Tab, visit } from './browser.ts';
import { describeConsole, type ServedConsole } from './setup.ts';

/** Connect the client of a page, and wait until it is connected. */
async function connect({ page }: Tab): Promise<void> {
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await page.getByRole('region', { name: 'Connection' }).getByText('connected', { exact: true }).waitFor();
}

/** The next message that another client receives. */
async function receiver(served: ServedConsole, filter: string, options: ClientOptions = {}) {
  const client = await served.broker.connect(options);
  await client.subscribe(filter, { qos: 2 });
  const messages = client.messages();
  return {
    client,
    async next() {
      const { value } = await messages.next();
      return value as NonNullable<typeof value>;
    }
  };
}

describeConsole(
  'The WebSocket client in the console',
  (served) => {
    it('connects, subscribes and publishes with the properties of MQTT 5, and shows each packet', async () => {
      const other = await receiver(served, 'from/page');
      const tab = await served.open(
        'websocket?id=page-5&user=u&sessionExpiryInterval=60&receiveMaximum=7&userProperties=a%3Db%3Dc&will.topic=last/words&will.payload=00ff&will.form=hex&will.contentType=x'
      );
      const { page } = tab;
      await page.getByLabel('Password').fill('a secret');
      await connect(tab);
      const { transportInfo, client } = served.broker.sessions.get('page-5');
      assert.deepEqual([transportInfo.transport, client.username, client.protocolVersion], ['ws', 'u', 5]);

      const subscribe = page.getByRole('region', { name: 'Subscriptions' });
      await subscribe.getByLabel('Topic filter').fill('from/+');
      await subscribe.getByLabel('QoS').selectOption('1');
      await subscribe.getByText('Options and properties').click();
      await subscribe.getByLabel('Retain Handling').selectOption('2');
      await subscribe.getByLabel('Subscription Identifier').fill('42');
      await subscribe.getByRole('button', { name: 'Subscribe', exact: true }).click();
      await subscribe.getByText('QoS 1').waitFor();

      const publish = page.getByRole('region', { name: 'Publish' });
      await publish.getByLabel('Topic', { exact: true }).fill('from/page');
      await publish.getByLabel('QoS').selectOption('2');
      await publish.getByLabel('Written as').selectOption('hex');
      await publish.getByLabel('Payload', { exact: true }).fill('00 fg');
      await publish.getByText('Properties of PUBLISH').click();
      await publish.getByLabel('Content Type').fill('application/x');
      await publish.getByLabel('Response Topic').fill('answers');
      await publish.getByLabel('Correlation Data').fill('0x0102');
      await publish.getByLabel('Message Expiry Interval').fill('90');
      await publish.getByLabel('User Properties').fill('unit=kWh\nunit=MWh');
      await publish.getByRole('button', { name: 'Publish' }).click();
      await publish.getByText('hexadecimal digits are 0 to 9 and a to f').waitFor();
      await publish.getByLabel('Payload', { exact: true }).fill('00 ff');
      await publish.getByRole('button', { name: 'Publish' }).click();
      await publish.getByText('Acknowledged.').waitFor();

      const { payload, qos, properties } = await other.next();
      assert.deepEqual([[...payload], qos], [[0, 255], 2]);
      assert.equal(properties.contentType, 'application/x');
      assert.equal(properties.responseTopic, 'answers');
      assert.deepEqual([...(properties.correlationData ?? [])], [1, 2]);
      assert.ok((properties.messageExpiryInterval ?? 0) > 80);
      assert.deepEqual(properties.userProperties, [
        ['unit', 'kWh'],
        ['unit', 'MWh']
      ]);

      // its copy of the message has the subscription identifier
      await page.getByRole('row', { name: 'received PUBLISH' }).getByRole('button').click();
      await page.getByText('000000 00 ff').waitFor();
      await page.locator('.below').getByText('42').waitFor();
      for (const name of ['CONNECT', 'SUBSCRIBE', 'PUBREL'])
        await page.getByRole('row', { name: `sent ${name}` }).waitFor();
      assert.ok(!(await page.content()).includes('a secret'), 'the log has no password');
      assert.ok(!page.url().includes('secret'));
      assert.equal(await page.evaluate('JSON.stringify(localStorage) + JSON.stringify(sessionStorage)'), '{}{}');
      await page.waitForURL(/pub\.contentType=application/);
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('sends the will if the connection is dropped, and a reason code with DISCONNECT', async () => {
      const other = await receiver(served, 'last/dropped');
      const tab = await served.open('websocket?id=page-w&will.topic=last/dropped&will.payload=gone');
      const { page } = tab;
      await connect(tab);
      await page.getByRole('button', { name: 'Drop the connection' }).click();
      assert.equal(String((await other.next()).payload), 'gone');
      await page.getByLabel('Topic', { exact: true }).first().fill('last/#');
      await page.getByRole('button', { name: 'Connect', exact: true }).click();
      await page.getByText('the wildcard "#" is not allowed in topic names').waitFor();
      await page.getByLabel('Topic', { exact: true }).first().fill('last/dropped');
      await connect(tab);
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await page.getByRole('dialog').getByLabel('Reason String').fill('x'.repeat(65_536));
      await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
      await page.getByRole('dialog').getByRole('alert').filter({ hasText: '65535' }).waitFor();
      assert.equal(served.broker.sessions.get('page-w').state, 'connected');
      await page.getByRole('dialog').getByLabel('Reason String').fill('');
      await page.getByRole('dialog').getByLabel('Reason code').selectOption('4');
      await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
      assert.equal(String((await other.next()).payload), 'gone');
      await page.getByText('not connected').waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('uses MQTT 3.1.1 without properties, and keeps the log in place while it is paused', async () => {
      const tab = await served.open('websocket?v=4&id=page-4&clean=no&sub.filter=to/page');
      const { page } = tab;
      assert.equal(await page.getByText('Properties of CONNECT').count(), 0);
      await connect(tab);
      assert.equal(served.broker.sessions.get('page-4').client.protocolVersion, 4);
      await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
      await page.getByRole('row', { name: 'received SUBACK' }).waitFor();
      await page.getByRole('button', { name: 'Pause' }).click();
      const client = await served.broker.connect();
      await client.publish('to/page', 'held');
      await page.getByText('1 newer row waits').waitFor();
      assert.equal(await page.getByRole('row', { name: 'received PUBLISH' }).count(), 0);
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('row', { name: 'received PUBLISH' }).waitFor();
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await connect(tab);
      await page.getByText('resumed', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Unsubscribe' }).click();
      await page.getByRole('row', { name: 'received UNSUBACK' }).waitFor();
      await page.getByRole('link', { name: 'show those of the session' }).waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('connects again after a lost connection and subscribes again, but not after a refusal that will be repeated', async () => {
      const tab = await served.open('alarms', 'ann', {});
      const { page } = tab;
      // the second connection is cut when it subscribes again
      const cuts: (() => Promise<void>)[] = [];
      await page.routeWebSocket(/\/mqtt$/, (route) => {
        const server = route.connectToServer();
        const cut = async () => {
          await server.close({ code: 1000 });
          await route.close({ code: 4000, reason: 'cut' });
        };
        const isSecond = cuts.push(cut) === 2;
        route.onMessage((message) => {
          if (isSecond && (message as Buffer)[0] === 0x82) void cut();
          else server.send(message);
        });
      });
      await page.goto(`${served.base}/websocket?id=page-r&sub.filter=again`);
      await connect(tab);
      await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
      await page.getByRole('row', { name: 'received SUBACK' }).waitFor();
      await cuts[0]();
      await page.getByRole('alert').or(page.locator('.problem')).filter({ hasText: 'code 4000: cut' }).waitFor();
      await page.getByText('Next attempt in').waitFor();
      for (const count of [2, 3]) {
        await page.getByRole('button', { name: 'Try now' }).click();
        await page
          .getByRole('row', { name: 'sent SUBSCRIBE' })
          .nth(count - 1)
          .waitFor();
      }
      await page.getByRole('row', { name: 'received SUBACK' }).nth(1).waitFor();
      assert.equal(cuts.length, 3, 'connections');
      assert.deepEqual(
        [...served.broker.sessions.get('page-r').subscriptions()].map(({ filter }) => filter),
        ['again']
      );
      served.broker.sessions.get('page-r').kick({ reasonCode: 0x8b });
      await page.getByText('server shutting down').first().waitFor();
      await page.getByRole('button', { name: 'Try now' }).click();
      await page.getByRole('region', { name: 'Connection' }).getByText('connected', { exact: true }).waitFor();
      served.broker.sessions.get('page-r').kick();
      await page.getByRole('alert').filter({ hasText: 'administrative action' }).waitFor();
      await page.getByText('not connected').waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });

    it('ends with the session of the console, and connects again after the login', async () => {
      const tab = await served.open('websocket?id=page-s');
      const { page } = tab;
      await connect(tab);
      await served.broker.users.setPassword('ann', PASSWORD);
      await page.getByRole('dialog').getByText('The session has ended').waitFor();
      await page.getByText('logged out').waitFor();
      await logIn(tab, 'ann');
      await page.getByRole('region', { name: 'Connection' }).getByText('connected', { exact: true }).waitFor();
      assert.equal(served.broker.sessions.get('page-s').state, 'connected');
      await tab.close();
    });

    it('answers the challenges of enhanced authentication, authenticates again, and sends properties with UNSUBSCRIBE', async () => {
      const asked: string[] = [];
      const unhook = served.broker.hook('authenticate', ({ method, data, round }) => {
        if (method !== 'riddle') return undefined;
        asked.push(`${round} ${data ?? ''}`);
        if (String(data) === '42') return true;
        return round === 0 ? { challenge: Buffer.from([0xff, 0x00]) } : false;
      });
      const tab = await served.open(
        'websocket?id=page-a&authenticationMethod=riddle&sub.filter=a&unsub.userProperties=why%3Ddone'
      );
      const { page } = tab;
      const dialog = page.getByRole('dialog');
      const data = dialog.getByLabel('Authentication Data');
      await page.getByRole('button', { name: 'Connect', exact: true }).click();
      await dialog.getByText('000000 ff 00').waitFor();
      const address = page.url();
      await visit(tab, `${served.base}/clients`);
      await page.locator('nav a', { hasText: 'WebSocket client' }).getByText('asks').waitFor();
      await visit(tab, `${served.base}/websocket?${new URL(address).searchParams}`);
      await dialog.getByText('000000 ff 00').waitFor();
      await data.fill('0x4');
      await dialog.getByRole('button', { name: 'Send the answer' }).click();
      await dialog.getByText('each byte has two hexadecimal digits').waitFor();
      await data.fill('0x3432');
      await dialog.getByLabel('User Properties').fill('a=b');
      await dialog.getByRole('button', { name: 'Send the answer' }).click();
      await page.getByRole('region', { name: 'Connection' }).getByText('connected', { exact: true }).waitFor();
      await page.getByRole('row', { name: 'sent AUTH' }).getByRole('button').click();
      await page.locator('.below').getByText('a =').waitFor();

      await page.getByRole('button', { name: 'Authenticate again' }).click();
      await data.fill('x');
      await dialog.getByRole('button', { name: 'Authenticate again' }).click();
      await dialog.getByText('000000 ff 00').waitFor();
      await dialog.getByLabel('Authentication Data').last().fill('42');
      await dialog.getByRole('button', { name: 'Send the answer' }).click();
      await page.getByText('The broker has accepted the authentication').first().waitFor();
      assert.equal(await dialog.count(), 0);
      assert.deepEqual(asked, ['0 ', '1 42', '0 x', '1 42']);

      await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
      await page.getByRole('button', { name: 'Unsubscribe' }).click();
      await page.getByText('The client has no subscriptions').waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('row', { name: 'sent UNSUBSCRIBE' }).getByRole('button').click();
      await page.locator('.below').getByText('why =').waitFor();

      // a wrong answer ends the attempts, and Cancel closes the connection
      await page.getByRole('button', { name: 'Drop the connection' }).click();
      await page.getByRole('button', { name: 'Connect', exact: true }).click();
      await data.fill('wrong');
      await dialog.getByRole('button', { name: 'Send the answer' }).click();
      await page.getByRole('alert').filter({ hasText: 'not authorized' }).waitFor();
      await page.getByRole('button', { name: 'Connect', exact: true }).click();
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await page.getByText('not connected').waitFor();
      assert.equal(await dialog.count(), 0);
      assert.ok(!new URL(page.url()).search.includes('42'), 'the port may contain it');
      assert.deepEqual(tab.faults, []);
      await tab.close();
      unhook();
    });

    it('tells viewers why they cannot connect', async () => {
      const tab = await served.open('websocket', 'bob');
      const button = tab.page.getByRole('button', { name: 'Connect', exact: true });
      await button.waitFor();
      assert.equal(await button.isDisabled(), true);
      await tab.page.getByText('Only administrators can connect this client').waitFor();
      assert.deepEqual(tab.faults, []);
      await tab.close();
    });
  },
  { prepare: (http, { attachUpgrades }) => void attachUpgrades(http) }
);

describeConsole('A console whose host passes no WebSocket on', (served) => {
  it('says what the host has to do', async () => {
    const tab = await served.open('websocket');
    const { page } = tab;
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'attachUpgrades(server)' }).waitFor();
    await page.reload();
    await page.getByText('Upgrade requests of WebSockets do not arrive').waitFor();
    await tab.close();
  });
});
