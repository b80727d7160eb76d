// The pages that show topics, clients and messages, in a real browser.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { describeConsole } from './setup.ts';

describeConsole('Observing topics, clients and messages', (served) => {
  it('shows payloads as CBOR and Sparkplug B, by content type and topic or when they are chosen, and faults in words', async () => {
    const client = await served.broker.connect({ clientId: 'binary' });
    const retained = async (topic: string, hex: string, contentType?: string) =>
      client.publish(topic, Buffer.from(hex, 'hex'), {
        retain: true,
        ...(contentType !== undefined && { properties: { contentType } })
      });
    await retained('bin/cbor', 'a2617401616182c10280', 'application/cbor');
    await retained('bin/deep', '81'.repeat(5_000));
    await retained('spBv1.0/plant/DDATA/n/d', '12110a0454656d70200a690000000000803540');
    const tab = await served.open('topics?topic=bin/cbor');
    const { page } = tab;
    const shown = (text: RegExp | string) => page.locator('.detail pre').filter({ hasText: text }).waitFor();
    await shown(/"t": 1,\s+"a": \[\s+1\(2\)/);
    await page.getByRole('button', { name: 'Hex', exact: true }).click();
    await shown('000000  a2 61 74');
    await page.goto(`${served.base}/topics?topic=bin/deep`);
    await page.getByRole('button', { name: 'CBOR' }).click();
    await page.getByText('nested too deeply from byte 65').waitFor();
    await page.getByRole('button', { name: 'Sparkplug B' }).click();
    await page.getByText('The payload is not Sparkplug B from byte 0 on').waitFor();
    await page.goto(`${served.base}/topics?topic=spBv1.0/plant/DDATA/n/d`);
    await shown(/"name": "Temp",\s+"datatype": "Double",\s+"value": 21.5/);
    assert.deepEqual(tab.faults, []);
    await tab.close();
  });
});
