// paho-mqtt 2 from PyPI: the tests in its source package for MQTT 5, and flows with each version of MQTT.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { describeFlows, type Flows, runFlow } from './flows.ts';
import { type Python, pythonWith, runPython, sourceOf } from './python.ts';
import { Stage } from './stage.ts';

let python: Python;
let stage: Stage;

const PAHO: Flows = {
  library: 'paho-mqtt',
  program: 'paho-flows.py',
  flows: {
    exchange: 'exchanges messages of each QoS in both directions, complete and in order',
    sessions: 'finds its session with subscriptions and messages again, and none after a clean one',
    wills: 'leaves a will when its connection is lost, and none after DISCONNECT',
    retained: 'sets, replaces and deletes retained messages, and receives them',
    filters: 'uses wildcards and shared subscriptions',
    helpers: 'publishes and subscribes with the functions of its modules publish and subscribe',
    large: 'sends and receives payloads of 4 MB and empty ones',
    keepalive: 'stays connected by its pings'
  },
  publishesWithCuts: [1, 2],
  overTransports: ['exchange', 'large'],
  python: () => python,
  stage: () => stage
};

before(async () => {
  python = pythonWith('paho', ['paho-mqtt>=2,<3']);
  console.log(`paho-mqtt ${python.versions['paho-mqtt']}`);
  stage = await Stage.start({ maxPacketSize: 5_000_000 }, (broker) => {
    // its tests expect one filter to be refused, with the code of MQTT 3.1.1
    broker.hook('authorizeSubscribe', ({ filter }) => (filter === 'test/nosubscribe' ? 0x80 : true));
  });
});

after(() => stage[Symbol.asyncDispose]());

describeFlows(PAHO);

describe('paho-mqtt', { timeout: 600_000 }, () => {
  it('sends and receives the properties of MQTT 5', async () => {
    await runFlow(PAHO, 'mqtt5', 5);
  });

  it('passes its own tests for MQTT 5', async () => {
    const outcomes: Record<string, string> = {};
    const folder = sourceOf(python, 'paho-mqtt');
    await runPython(python, 'paho-suite.py', [folder, String(stage.ports.tcp)], {
      cwd: folder,
      timeoutMs: 400_000,
      onLine: async (line) => {
        if (line === 'restart') {
          await stage.close(true);
          await stage.open();
          return 'started';
        }
        const { test, outcome, text } = JSON.parse(line);
        outcomes[test] = text === null ? outcome : `${outcome}: ${text}`;
        return undefined;
      }
    });
    assert.ok(Object.keys(outcomes).length > 20, JSON.stringify(outcomes));
    assert.deepEqual(
      Object.entries(outcomes).filter(([, outcome]) => outcome !== 'passed'),
      []
    );
  });
});
