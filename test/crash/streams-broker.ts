import { levelStore } from '../../adapters/level/index.ts';
import { listen } from '../../adapters/net/index.ts';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { createBroker } from '../../lib/index.ts';

// A durable broker with two stream rules with partly filled windows: one delivers at least once, the other exactly once. Their rows are
// messages of this broker, or of another server with QoS 1 and 2, if its URL is given. It prints its port.
const { folder, port, server } = JSON.parse(process.argv[2]);
const sections = Object.fromEntries([1, 2].map((qos) => [`qos${qos}`, { server, qos, protocolVersion: '5' }]));
const unlimited = { maxMqueueLen: 0, maxMqueueBytes: 0 };
const broker = createBroker({
  store: levelStore(folder),
  sessionExpiryInterval: '1h',
  ...unlimited,
  streams: {
    definitions: [1, 2].map(
      (qos) =>
        `CREATE STREAM numbers${qos} () WITH (DATASOURCE="numbers", FORMAT="JSON"${server === undefined ? '' : `, CONF_KEY="qos${qos}"`})`
    ),
    ...(server === undefined ? {} : { sources: [mqttSource()], sourceConfig: { mqtt: sections } }),
    rules: [1, 2].map((qos) => ({
      id: `qos${qos}`,
      sql: `SELECT collect(n) AS ns FROM numbers${qos} GROUP BY COUNTWINDOW(7)`,
      actions: [{ mqtt: { topic: `windows/${qos}`, qos: 2, sendSingle: true } }],
      options: { qos: qos as 1 | 2, checkpointInterval: 100, sendError: false }
    }))
  }
});
const listener = listen(broker, port);
await broker.start();
console.log((await listener).port);
setInterval(() => undefined, 60_000);
