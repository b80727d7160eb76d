// A stream rule is a continuous query over messages: here the mean of each sensor in windows of ten seconds. The clock of the test kit ends the
// window at once. In an app, createBroker() has the same `streams`.
import { createTestBroker } from 'embermq/testing';

await using kit = await createTestBroker();
const { streams } = kit.broker;
await streams.create('CREATE STREAM sensors (name STRING, celsius FLOAT) WITH (DATASOURCE="sensors/#", FORMAT="JSON")');
await streams.rules.create({
  id: 'mean',
  sql: 'SELECT name, avg(celsius) AS mean, count(*) AS n FROM sensors GROUP BY name, TUMBLINGWINDOW(ss, 10)',
  actions: [{ mqtt: { topic: 'means/{{.name}}', sendSingle: true } }]
});
const stop = kit.broker.subscribe('means/#', ({ topic, payload }) => console.log(`${topic}: ${payload}`));

await kit.broker.publish('sensors/1', '{"name": "kiln", "celsius": 81}');
await kit.broker.publish('sensors/1', '{"name": "kiln", "celsius": 79}');
await kit.broker.publish('sensors/2', '{"name": "attic", "celsius": 21.5}');
await kit.clock.advance('10s');
stop();
// prints:
// means/kiln: {"name":"kiln","mean":80,"n":2}
// means/attic: {"name":"attic","mean":21.5,"n":1}
