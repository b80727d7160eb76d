import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';

// A durable broker with two stream rules in the middle of windows: one delivers at least once, the other exactly once. It prints its port.
const { folder, port } = JSON.parse(process.argv[2]);
const unlimited = { maxMqueueLen: 0, maxMqueueBytes: 0 };
const broker = createBroker({
  store: levelStore(folder),
  sessionExpiryInterval: '1h',
  ...unlimited,
  streams: {
    definitions: ['CREATE STREAM numbers () WITH (DATASOURCE="numbers", FORMAT="JSON")'],
    rules: [1, 2].map((qos) => ({
      id: `qos${qos}`,
      sql: 'SELECT collect(n) AS ns FROM numbers GROUP BY COUNTWINDOW(7)',
      actions: [{ mqtt: { topic: `windows/${qos}`, qos: 2, sendSingle: true } }],
      options: { qos: qos as 1 | 2, checkpointInterval: 100, sendError: false }
    }))
  }
});
const listener = listen(broker, port);
await broker.start();
console.log((await listener).port);
setInterval(() => undefined, 60_000);
