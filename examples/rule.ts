// A rule selects from messages and events with SQL, and runs actions with each output: here a republish, and a function of the app.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
import { createBroker } from 'embermq';

const broker = createBroker();
await broker.start();
broker.subscribe('alarms/#', ({ topic, payload }) => console.log(`${topic}: ${payload}`));

await broker.rules.create({
  id: 'hot',
  sql: `SELECT clientid, payload.celsius AS celsius FROM "sensors/#" WHERE celsius > 80`,
  actions: [
    { name: 'republish', params: { target_topic: 'alarms/${clientid}', target_qos: 1, payload_tmpl: '${celsius} °C' } }
  ]
});
await broker.rules.create({
  id: 'left',
  sql: `SELECT clientid, reason FROM "$events/client_disconnected"`,
  actions: [(output) => console.log('left:', output)]
});

const kiln = await broker.connect({ clientId: 'kiln' });
await kiln.publish('sensors/kiln', '{"celsius": 79}', { qos: 1 });
await kiln.publish('sensors/kiln', '{"celsius": 81}', { qos: 1 });
await kiln.disconnect();

await broker.stop();
// prints:
// alarms/kiln: 81 °C
// left: { clientid: 'kiln', reason: 'normal' }
