// A rule over a stream of rows, with a window that the clock of the test kit ends. In an app, `createBroker()` has the same `streams`.
import { compileStreamRule } from 'embermq/streams';
import { createTestBroker } from 'embermq/testing';

await using kit = await createTestBroker();
const { streams } = kit.broker;
await streams.define('CREATE STREAM sensors (name STRING, celsius FLOAT) WITH (DATASOURCE="sensors/#", FORMAT="JSON")');

// An action may be a function of the app.
await streams.rules.create({
  id: 'hot',
  sql: 'SELECT name, celsius FROM sensors WHERE celsius > 80',
  actions: [(rows) => console.log('hot:', rows)]
});

// The emissions of a rule can be iterated over. When the iteration ends, the rule is dropped.
const means = await streams.rule(
  'SELECT name, avg(celsius) AS mean, count(*) AS n FROM sensors GROUP BY name, TUMBLINGWINDOW(ss, 10)'
);
await kit.broker.publish('sensors/1', '{"name": "kiln", "celsius": 81}'); // what a device sends
await streams.push('sensors', { name: 'kiln', celsius: 79 }); // what the app pushes, as if a device had sent it
await kit.clock.advance('10s');
for await (const rows of means) {
  console.log('mean:', rows);
  break;
}
console.log(
  'rules:',
  (await streams.rules.list()).map(({ id, status }) => `${id} ${status}`)
);

// Without a broker, a statement runs over rows with times, for unit tests of statements.
const changes = await compileStreamRule('SELECT celsius FROM sensors WHERE celsius > lag(celsius)');
const { outputs } = changes.run([1, 3, 2, 4].map((celsius, at) => ({ stream: 'sensors', values: { celsius }, at })));
console.log('rises:', JSON.stringify(outputs));
// prints:
// hot: [ { name: 'kiln', celsius: 81 } ]
// mean: [ { name: 'kiln', mean: 80, n: 2 } ]
// rules: [ 'hot Running' ]
// rises: [{"at":1,"rows":[{"celsius":3}]},{"at":3,"rows":[{"celsius":4}]}]
