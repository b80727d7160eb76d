// The views of the console, and what they need to have content.
import type { Broker } from 'embermq';
import { rawClient } from '../support/raw-client.ts';

/** The addresses of all views below the mount, with the choices that show their parts. */
export const VIEWS: readonly string[] = [
  '',
  'clients',
  'client?id=meter-1',
  'client?id=meter-1&tab=subscriptions',
  'topics',
  'topics?topic=meters%2F1%2Fstate',
  'client?id=meter-1&tab=history',
  'client?id=meter-1&tab=chart',
  'client?id=unread',
  'client?id=unread&tab=inflight',
  'client?id=unread&tab=queue',
  'client?id=unread&tab=rights',
  'client?id=gone',
  'tail?filter=none',
  'why',
  'why?topic=Commands%2F1&client=meter-1',
  'traces',
  'traces?id=1',
  'websocket?will.topic=w&sessionExpiryInterval=60',
  'access?clientid=meter-1&action=publish&topic=a',
  'access?tab=rules',
  'access?tab=bans',
  'access?tab=mqtt',
  'access?tab=mqtt&kind=login',
  'access?tab=users',
  'access?tab=apps',
  'rules',
  'rules?tab=resources',
  'stream-rules',
  'stream-rules?tab=streams',
  'stream-rules?tab=schemas',
  'stream?kind=table',
  'stream?name=seen',
  'stream-rule',
  'stream-rule?id=seen',
  'rule',
  'rule?id=hot',
  'alarms',
  'alarms?tab=past',
  'webhooks',
  'webhooks?name=none',
  'bridges',
  'options',
  'features',
  'listeners',
  'node'
];

/** Messages that are in flight to a client that acknowledges none. */
const IN_FLIGHT = 2;

/** Connect a client that acknowledges nothing, and send it messages below `unread/`: two are in flight to it then, and the others wait in its queue. */
export async function connectUnread(broker: Broker, clientId: string, topics: readonly string[]): Promise<void> {
  const unread = await rawClient(broker, { clientId, properties: { receiveMaximum: IN_FLIGHT } });
  const subscriptions = [
    { topic: 'unread/#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }
  ] as const;
  unread.send({ cmd: 'subscribe', messageId: 1, subscriptions: [...subscriptions] });
  await unread.next('suback');
  const writer = await broker.connect({ clientId: 'writer' });
  for (const topic of topics) await writer.publish(topic, topic, { qos: 1 });
  await writer.disconnect();
}

/** A stream and its rule with the name `seen`, and a client `unread` with messages in flight and in its queue. */
export async function fillViews(broker: Broker): Promise<void> {
  await broker.streams.create('CREATE STREAM seen (t FLOAT) WITH (DATASOURCE="seen/+", FORMAT="JSON")');
  await broker.streams.rules.create({ id: 'seen', sql: 'SELECT t FROM seen', actions: [{ log: {} }] });
  await connectUnread(broker, 'unread', ['unread/1', 'unread/2', 'unread/3', 'unread/4']);
}
