import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { listen } from 'embermq/net';
import { mqttSink, mqttSource } from '../../adapters/streams/mqtt/index.ts';
import type { ListenerProtocol } from '../../lib/records/listener.ts';
import { isOwnServer } from '../../lib/streams/own-server.ts';

describe('A server in a stream or an action', () => {
  const listeners = [
    ['mqtt:tcp', '127.0.0.1', 1883],
    ['mqtt:ssl', '::', 8883],
    ['mqtt:ws', '0.0.0.0', 8083],
    ['mqtt:tcp', '192.0.2.1', 1884],
    ['http:management', '127.0.0.1', 8081]
  ].map(([protocol, host, port]) => ({
    protocol: protocol as ListenerProtocol,
    address: { host: host as string, port: port as number }
  }));

  it('recognizes this broker by the address of an open listener, or by a loopback address', () => {
    const own = [
      ...['tcp://127.0.0.1:1883', 'mqtt://localhost', '127.0.0.1', 'localhost:1883', 'TCP://LOCALHOST:1883'],
      ...['ssl://[::1]:8883', 'mqtts://127.0.0.1', 'ws://localhost:8083/mqtt', 'tcp://192.0.2.1:1884']
    ];
    assert.deepEqual(
      own.filter((server) => !isOwnServer(server, listeners)),
      []
    );
  });

  it('treats a server with another port, scheme or host as another one', () => {
    const others = [
      ...[
        'tcp://127.0.0.1:1885',
        'ssl://127.0.0.1:1883',
        'tcp://127.0.0.2:1883',
        'tcp://localhost:1884',
        'tcp://a:1883'
      ],
      ...[
        'tcp://127.0.0.1:8081',
        'http://127.0.0.1:1883',
        'tcp://',
        '',
        'tcp://u@127.0.0.1:1883',
        'tcp://192.0.2.1:8883'
      ]
    ];
    assert.deepEqual(
      others.filter((server) => isOwnServer(server, listeners)),
      []
    );
  });

  it('needs no connection if the server is this broker', async () => {
    const broker = createBroker({ streams: { sources: [mqttSource()], sinks: [mqttSink()] } });
    const listener = listen(broker, 0);
    await broker.start();
    const { port } = listener.address as { port: number };
    const server = `tcp://localhost:${port}`;
    const { streams } = broker;
    await streams.create('CREATE STREAM demo () WITH (DATASOURCE="in", FORMAT="JSON", TYPE="mqtt")');
    await streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ mqtt: { server, topic: 'out' } }] });
    const got: string[] = [];
    broker.subscribe('out', ({ payload }) => void got.push(String(payload)));
    await broker.publish({ topic: 'in', payload: '{"a":1}' });
    assert.deepEqual(got, ['[{"a":1}]']);
    assert.equal(listener.info().currentConnections, 0);
    await broker.stop();
  });
});
