import type { BuildOptions } from 'esbuild';

/** Stores its state in memory. */
const APP = {
  prints: 'a/b x\n',
  code: `
  import { createBroker } from 'embermq';
  const run = async () => {
    const broker = createBroker();
    await broker.start();
    const client = await broker.connect({ clientId: 'c' });
    const received = new Promise((resolve) => {
      client.subscribe('a/#', ({ topic, payload }) => resolve(topic + ' ' + payload), { qos: 1 });
    });
    await broker.publish('a/b', 'x', { qos: 1, retain: true });
    console.log(await received);
    await broker.stop();
  };
  run();
`
};

/** Encodes CONNECT and PUBLISH with QoS 0, over TCP and WebSocket. */
const LISTENING_APP = {
  prints: 'a/tcp x\na/ws x\n',
  code: `
  import { connect } from 'node:net';
  import { createBroker } from 'embermq';
  import { listen, ws } from 'embermq/net';
  const packets = (topic) => Buffer.concat([
    Buffer.from([0x10, 12, 0, 4]), Buffer.from('MQTT'), Buffer.from([4, 2, 0, 60, 0, 0]),
    Buffer.from([0x30, topic.length + 3, 0, topic.length]), Buffer.from(topic + 'x')
  ]);
  const frame = (bytes) => Buffer.concat([Buffer.from([0x82, 0x80 + bytes.length, 0, 0, 0, 0]), bytes]);
  const upgrade = ['GET /mqtt HTTP/1.1', 'Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket',
    'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==', 'Sec-WebSocket-Protocol: mqtt', '', ''];
  const run = async () => {
    const broker = createBroker();
    const overTcp = listen(broker, 0);
    const overWebSocket = listen(broker, ws({ port: 0 }));
    await broker.start();
    for (const [listener, bytes] of [
      [overTcp, packets('a/tcp')],
      [overWebSocket, Buffer.concat([Buffer.from(upgrade.join('\\r\\n')), frame(packets('a/ws'))])]
    ]) {
      const received = broker.nextEvent('message.publish');
      const socket = connect(listener.port, '127.0.0.1');
      socket.write(bytes);
      const { message } = await received;
      console.log(message.topic, String(message.payload));
      socket.destroy();
    }
    await broker.stop();
  };
  run();
`
};

/** Would store its state in LevelDB if it were configured to do so. */
const LEVEL_APP = {
  prints: LISTENING_APP.prints,
  code: `
  import { levelStore } from 'embermq/level';
  if (process.argv.includes('--keep')) levelStore('./data');
  ${LISTENING_APP.code}
`
};

/** Imports the client without the broker. */
export const CLIENT_APP = `
  import { connect } from 'node:net';
  import { connectClient } from 'embermq/client';
  const client = await connectClient(connect(1883), { clientId: 'c' });
  await client.publish('a/b', 'x', { qos: 1 });
`;

/** The options for esbuild that lib/PACKAGE.md recommends. */
const WITH_REQUIRE = {
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" }
};
const WITHOUT_LEVEL = { external: ['level'] };

interface Bundle {
  readonly format: 'esm' | 'cjs';
  /** The largest of the entry points that the app imports. */
  readonly uses: string;
  readonly app: { readonly code: string; readonly prints: string };
  readonly more?: Partial<BuildOptions>;
  /** True if only the long form of the tests bundles it: another row has the same format, and uses more. */
  readonly isLong?: boolean;
}

/** The apps, with their options for bundling. */
export const BUNDLES: readonly Bundle[] = [
  { format: 'esm', uses: 'embermq', app: APP },
  { format: 'cjs', uses: 'embermq', app: APP, more: { minify: true } },
  { format: 'esm', uses: 'embermq/net', app: LISTENING_APP, more: WITH_REQUIRE, isLong: true },
  { format: 'cjs', uses: 'embermq/net', app: LISTENING_APP, isLong: true },
  { format: 'esm', uses: 'embermq/level, not used', app: LEVEL_APP, more: { ...WITH_REQUIRE, ...WITHOUT_LEVEL } },
  { format: 'cjs', uses: 'embermq/level, not used', app: LEVEL_APP, more: WITHOUT_LEVEL }
];
