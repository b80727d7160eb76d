// Tests of the device, with a broker in the same process and a virtual clock: minutes pass within milliseconds.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker, type TestBroker } from 'embermq/testing';
import { Station } from './station.ts';

/** Starts the station `north-1`. Its thermometer rises by one degree with each measurement. */
function station(kit: TestBroker) {
  let celsius = 20;
  const vent: boolean[] = [];
  const started = new Station({
    id: 'north-1',
    greenhouse: 'north',
    clock: kit.clock,
    connect: (options) => kit.connect(options),
    readCelsius: () => celsius++,
    setVent: (isOpen) => vent.push(isOpen)
  });
  started.start();
  return { vent, [Symbol.asyncDispose]: () => started.stop() };
}

const command = (kit: TestBroker, isOpen: boolean) =>
  kit.broker.publish({ topic: 'greenhouses/north/command', payload: JSON.stringify({ isOpen }), qos: 1 });

describe('a station', () => {
  it('reports its temperature every ten seconds', async () => {
    await using kit = await createTestBroker();
    await using _ = station(kit);
    await kit.expectNoMessage('greenhouses/+/+/temperature', { within: '9s' });
    const { text, topic } = await kit.expectMessage('greenhouses/+/+/temperature', { within: '1s' });
    assert.equal(topic, 'greenhouses/north/north-1/temperature');
    assert.deepEqual(JSON.parse(text), { celsius: 20 });
  });

  it('opens its vent on a command, and closes it five minutes after the last one', async () => {
    await using kit = await createTestBroker();
    await using device = station(kit);
    await kit.clock.settle();
    await command(kit, true);
    await kit.clock.advance('4m');
    await command(kit, true);
    await kit.clock.advance('4m 59s');
    assert.deepEqual(device.vent, [true]);
    await kit.clock.advance('1s');
    assert.deepEqual(device.vent, [true, false]);
    assert.equal(
      (await kit.broker.retained.get('greenhouses/north/north-1/vent'))?.payload.toString(),
      '{"isOpen":false}'
    );
  });

  it('opens its vent on an alarm', async () => {
    await using kit = await createTestBroker();
    await using device = station(kit);
    await kit.clock.settle();
    await kit.broker.publish('greenhouses/north/alarm', '{"celsius": 36}');
    await kit.clock.settle();
    assert.deepEqual(device.vent, [true]);
    await command(kit, false);
    await kit.clock.settle();
    assert.deepEqual(device.vent, [true, false]);
  });

  it('closes its vent without a connection, and reports that after the next one', async () => {
    await using kit = await createTestBroker();
    await using device = station(kit);
    await kit.clock.settle();
    await command(kit, true);
    await kit.clock.settle();
    kit.isReachable = false;
    kit.link('north-1').cut();
    await kit.clock.advance('5m');
    assert.deepEqual(device.vent, [true, false]);
    kit.isReachable = true;
    const { text } = await kit.expectMessage('greenhouses/north/north-1/vent', { within: '1m' });
    assert.deepEqual(JSON.parse(text), { isOpen: false });
  });
});
