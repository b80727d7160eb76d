// A source and a function of the app for stream rules: rows come from a timer here; any library with callbacks works
// the same way.
import { createBroker } from 'embermq';
import type { SourceType, StreamFunction } from 'embermq/adapter';

const counter: SourceType = {
  name: 'counter',
  about: 'Counts up.',
  properties: { interval: { type: 'number', unit: 'ms', default: 1000, about: 'Time between rows.' } },
  open({ properties, row, connected }) {
    let n = 0;
    const timer = setInterval(() => row({ n: ++n }), Number(properties.interval));
    connected();
    return { close: () => clearInterval(timer) };
  }
};
const square: StreamFunction = {
  name: 'square',
  kind: 'scalar',
  family: 'app',
  params: ['number'],
  about: 'The number, squared.',
  run: (x) => Number(x) ** 2
};

const broker = createBroker({
  streams: { sources: [counter], functions: [square], sourceConfig: { counter: { fast: { interval: 5 } } } }
});
await broker.start();
await broker.streams.create('CREATE STREAM numbers (n BIGINT) WITH (TYPE="counter", CONF_KEY="fast")');

// The emissions of such a rule are iterated over. When the loop ends, the rule is deleted, and the source is closed.
for await (const [{ n, squared }] of await broker.streams.rule('SELECT n, square(n) AS squared FROM numbers')) {
  console.log(n, squared);
  if (n === 3) break;
}
await broker.stop();
// prints:
// 1 1
// 2 4
// 3 9
