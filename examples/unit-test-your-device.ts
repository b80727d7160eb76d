// Tests for the thermometer of device/thermometer.ts, with a broker in the same process, without a port. Hours pass within milliseconds.
// Run it with: node --import tsx --test examples/unit-test-your-device.ts
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker, type TestBroker } from 'embermq/testing';
import { Thermometer } from './device/thermometer.ts';

function thermometer(kit: TestBroker): AsyncDisposable {
  let celsius = 20;
  const device = new Thermometer({
    clock: kit.clock, // in production: systemClock
    connect: (options) => kit.connect(options), // in production: connectClient(net.connect(1883), options)
    read: () => celsius++
  });
  device.start();
  return { [Symbol.asyncDispose]: () => device.stop() };
}

describe('a thermometer', () => {
  it('sends its temperature every ten seconds', async () => {
    await using kit = await createTestBroker();
    await using _ = thermometer(kit);
    await kit.expectNoMessage('thermometer/celsius', { within: '9s' });
    const { text } = await kit.expectMessage('thermometer/celsius', { within: '1s' });
    assert.equal(text, '20.0');
    await kit.clock.advance('1h');
    const sent = kit
      .packets('thermometer')
      .filter(({ cmd, direction }) => cmd === 'publish' && direction === 'toBroker');
    assert.equal(sent.length, 1 + 361); // "online", and one every ten seconds
  });

  it('waits 1, 2, 4 seconds while the broker is busy', async () => {
    await using kit = await createTestBroker();
    for (let n = 0; n < 3; n++) kit.refuseNext(0x89); // server busy
    const startMs = kit.clock.now();
    await using _ = thermometer(kit);
    await kit.expectMessage('thermometer/state', { within: '10s', where: ({ text }) => text === 'online' });
    const connects = kit.packets('thermometer').filter(({ cmd }) => cmd === 'connect');
    assert.deepEqual(
      connects.map(({ at }) => at - startMs),
      [0, 1_000, 3_000, 7_000]
    );
  });

  it('sends its measurements after the network was down', async () => {
    await using kit = await createTestBroker();
    await using _ = thermometer(kit);
    await kit.expectMessage('thermometer/celsius', { within: '10s' });
    kit.isReachable = false;
    kit.link('thermometer').cut();
    await kit.expectMessage('thermometer/state', { where: ({ text }) => text === 'offline' }); // the will
    await kit.clock.advance('25s');
    kit.isReachable = true;
    const { text } = await kit.expectMessage('thermometer/celsius', { within: '60s' });
    assert.equal(text, '21.0');
  });

  it('detects a dead connection with keep alive', async () => {
    await using kit = await createTestBroker();
    await using _ = thermometer(kit);
    await kit.clock.settle();
    kit.link('thermometer').halfOpen();
    await kit.expectMessage('thermometer/state', { within: '2m', where: ({ text }) => text === 'online' });
  });
});
// prints, with the spec reporter:
// ▶ a thermometer
//   ✔ sends its temperature every ten seconds
//   ✔ waits 1, 2, 4 seconds while the broker is busy
//   ✔ sends its measurements after the network was down
//   ✔ detects a dead connection with keep alive
