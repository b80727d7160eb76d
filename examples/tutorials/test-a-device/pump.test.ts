// The tests of the tutorial "Test a device". Run them with: node --import tsx --test --test-reporter=spec pump.test.ts

// #region setup
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { setupBroker } from 'embermq/testing';
import mqtt from 'mqtt';
import { CONNECTION, startPump } from './pump.ts';

const test = setupBroker({ beforeEach, afterEach }, { timers: mock.timers });
let pump: mqtt.MqttClient;
let stop: () => void;
let isMotorOn = false;

beforeEach(async () => {
  const { kit } = test;
  // the transport is the only thing that differs from production; the tests decide when the pump connects again
  pump = new mqtt.MqttClient(() => kit.stream(), { ...CONNECTION, reconnectPeriod: 0 });
  pump.on('error', () => {});
  stop = startPump(pump, {
    level: () => 50,
    motor: (isOn) => {
      isMotorOn = isOn;
    }
  });
  await kit.expectMessage('pump/state', { where: ({ text }) => text === 'ready' });
});

afterEach(() => {
  stop();
  pump.end(true);
});
// #endregion

describe('the pump', () => {
  // #region logic
  it('reports its level every ten seconds', async () => {
    const { kit } = test;
    await kit.expectNoMessage('pump/level', { within: '9s' });
    const { text } = await kit.expectMessage('pump/level', { within: '2s' });
    assert.equal(text, '50');
  });

  it('runs for the requested seconds, and one minute at most', async () => {
    const { kit, clock } = test;
    await kit.broker.publish('pump/run', '20');
    await clock.advance('19s');
    assert.equal(isMotorOn, true);
    await clock.advance('2s');
    assert.equal(isMotorOn, false);

    await kit.broker.publish('pump/run', '3600');
    await clock.advance('61s');
    assert.equal(isMotorOn, false);
  });
  // #endregion

  // #region will
  it('becomes lost after 45 seconds if its network fails silently', async () => {
    const { kit, clock } = test;
    await clock.advance('10s'); // it has just reported its level
    const failedAt = clock.now();
    kit.link('pump').halfOpen();
    const { at } = await kit.expectMessage('pump/state', { within: '1m', where: ({ text }) => text === 'lost' });
    assert.equal(Math.round((at - failedAt) / 1_000), 45);
  });
  // #endregion

  // #region middle
  it('stops in time if its connection is lost in the middle, and reports it later', async () => {
    const { kit, clock } = test;
    await kit.broker.publish('pump/run', '20');
    await kit.expectMessage('pump/motor', { where: ({ text }) => text === 'on' });
    kit.link('pump').cut();
    await kit.expectMessage('pump/state', { where: ({ text }) => text === 'lost' });
    await clock.advance('21s');
    assert.equal(isMotorOn, false);
    assert.equal(kit.broker.retained.get('pump/motor')?.payload.toString(), 'on'); // not known yet

    const reported = kit.expectMessage('pump/motor', { where: ({ text }) => text === 'off' });
    await kit.reconnect(pump);
    await reported;
  });
  // #endregion

  // #region queue
  it('gets the commands that came while it was away', async () => {
    const { kit, clock } = test;
    kit.link('pump').cut();
    await clock.advance('1h');
    await kit.broker.publish('pump/run', '5', { qos: 1 });
    await kit.reconnect(pump);
    assert.equal(isMotorOn, true);
  });

  it('repeats a report whose acknowledgement was lost', async () => {
    const { kit, clock } = test;
    kit.link('pump').drop({ cmd: 'puback', direction: 'toClient' });
    await clock.advance('11s');
    kit.link('pump').cut();
    await kit.reconnect(pump);
    const reports = kit
      .packets('pump')
      .filter(({ packet }) => packet?.cmd === 'publish' && packet.topic === 'pump/level');
    assert.equal(reports.length, 2);
  });
  // #endregion
});
