// A bridge between two brokers: measurements of a site reach the central broker, and commands come back. Messages are
// queued while there is no connection.
import { type Broker, createBroker, type Message } from 'embermq';
import { bridge } from 'embermq/bridge';
import { listen } from 'embermq/net';

const central = createBroker(); // in production: on another machine, or any other MQTT server
const listener = listen(central, 0);
await central.start();

const site = createBroker();
bridge(site, {
  url: `mqtt://127.0.0.1:${listener.port}`,
  out: [{ filter: 'sensors/#', qos: 1, remotePrefix: 'site1/' }],
  in: [{ filter: 'commands/#', qos: 1, remotePrefix: 'site1/' }]
});
const connected = new Promise((resolve) => site.once('bridge.connected', resolve));
await site.start();
await connected;

/** Returns the next message that a broker routes to a filter. */
const next = (broker: Broker, filter: string) =>
  new Promise<Message>((resolve) => broker.subscribe(filter, resolve, { retainHandling: 2 }));

const measured = next(central, 'site1/sensors/#');
const command = next(site, 'commands/#');
await site.publish({ topic: 'sensors/attic', payload: '21.5', qos: 1 });
console.log('central:', (await measured).topic, String((await measured).payload));
await central.publish({ topic: 'site1/commands/restart', payload: 'now', qos: 1 });
console.log('site:', (await command).topic, String((await command).payload));

await site.stop();
await central.stop();
// prints:
// central: site1/sensors/attic 21.5
// site: commands/restart now
