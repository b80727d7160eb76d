// A listener of the app: clients connect over message ports of Node.js, for example from worker threads. Anything that gives a Duplex works the same way.
import { Duplex } from 'node:stream';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type Broker, createBroker } from 'embermq';
import type { ListenerHandle } from 'embermq/adapter';
import { connectClient } from 'embermq/client';

/** The bytes that arrive at a message port, and those that leave through it. */
function streamOf(port: MessagePort): Duplex {
  const stream = new Duplex({
    read() {},
    write(bytes: Buffer, _encoding, done) {
      port.postMessage(bytes);
      done();
    },
    final: (done) => done(void port.close())
  });
  port.on('message', (bytes: Uint8Array) => stream.push(bytes));
  port.on('close', () => stream.destroy());
  return stream;
}

/** `start` of the broker opens it, and `stop` closes it. */
function listenToPorts(broker: Broker): ListenerHandle & { connect(): MessagePort } {
  const connections = new Set<Duplex>();
  let isOpen = false;
  const listener: ReturnType<typeof listenToPorts> = {
    name: 'ports',
    protocol: 'mqtt:unix',
    address: undefined,
    open: async () => void (isOpen = true),
    close: async () => void (isOpen = false),
    info: () => ({ acceptors: 1, maxConnections: 0, currentConnections: connections.size, shutdownCount: {} }),
    connect() {
      if (!isOpen) throw new Error('the listener is closed');
      const { port1, port2 } = new MessageChannel();
      const stream = streamOf(port1).on('close', () => connections.delete(stream));
      connections.add(stream);
      broker.handle(stream, { transport: 'stream', listener: 'ports' });
      return port2;
    }
  };
  broker.attach(listener);
  return listener;
}

const broker = createBroker();
const ports = listenToPorts(broker);
await broker.start();
const client = await connectClient(streamOf(ports.connect()), { clientId: 'worker-1' });
await client.subscribe('jobs/#', ({ topic, payload }) => console.log(topic, String(payload)));
await broker.publish('jobs/1', 'resize');
await client.publish('jobs/2', 'rotate', { qos: 1 });
await client.disconnect();
await broker.stop();
// prints:
// jobs/1 resize
// jobs/2 rotate
