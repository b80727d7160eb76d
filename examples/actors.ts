// The actors of a broker and of a session, with xstate: wait until a session is connected and until it has ended, and show its states.
import { createBroker } from 'embermq';
import { toPromise, waitFor } from 'xstate';

const broker = createBroker();
const started = waitFor(broker.actor, (snapshot) => snapshot.matches('connected'));
await broker.start();
console.log(`broker: ${(await started).value}`);

const options = { clientId: 'boiler', clean: false, sessionExpiry: 3600 };
const boiler = await broker.connect(options);
const { actor } = broker.sessions.get('boiler');
actor.subscribe(({ value }) => console.log('session:', value));
const ended = toPromise(actor); // resolves when the session has ended

await boiler.disconnect();
await waitFor(actor, (snapshot) => snapshot.matches('disconnected'));
console.log(`may be resumed: ${actor.getSnapshot().can({ type: 'resumed' })}`);

await broker.connect(options); // the client returns: it is the same session, and the same actor
broker.sessions.get('boiler').kick();
await ended;
console.log(`actor: ${actor.getSnapshot().status}`);

try {
  broker.actor.send({ type: 'stop' });
} catch (error) {
  console.log((error as Error).message);
}
await broker.stop();
// prints:
// broker: connected
// session: { disconnected: 'waiting' }
// may be resumed: true
// session: connected
// session: gone
// actor: done
// the actor of the broker takes no events from outside, such as "stop"; call broker.start() or broker.stop()
