// A sink of the app for stream rules: each output becomes a line of text here; any library that takes values works the same way.
import { createBroker } from 'embermq';
import type { SinkType } from 'embermq/adapter';

const lines: SinkType = {
  name: 'lines',
  about: 'Writes lines.',
  properties: { prefix: { type: 'string', default: '', about: 'Begins each line.' } },
  open({ properties, connected }) {
    connected();
    return {
      send: ({ value }) => console.log(`${properties.prefix}${JSON.stringify(value)}`),
      close: () => console.log('closed')
    };
  }
};

const broker = createBroker({ streams: { sinks: [lines] } });
await broker.start();
await broker.streams.create('CREATE STREAM rooms (t FLOAT) WITH (DATASOURCE="rooms/+")');
await broker.streams.rules.create({
  id: 'warm',
  sql: 'SELECT t FROM rooms WHERE t > 20',
  actions: [{ lines: { prefix: 'warm: ', sendSingle: true } }] // sendSingle: an output is a row, not a list of rows
});

await broker.publish('rooms/attic', '{"t": 23.5}');
await broker.publish('rooms/cellar', '{"t": 12}');
await broker.stop();
// prints:
// warm: {"t":23.5}
// closed
