import { consoleText, inOneLine, namedOf } from '../base/symbols.ts';
import { uptimeText } from '../monitor/sys.ts';
import { type ListenerHandle, placeOf } from '../records/listener.ts';
import type { Broker } from './broker.ts';

/** A unit of time in the plural, as `uptimeText` writes it. */
const ONE = /\b1 (\w+)s\b/g;

/** The text that `console.log` prints for a broker: its state, its listeners, and how much it serves. */
export function brokerText(broker: Pick<Broker, BrokerMember>, depth: number, options: object): string {
  return consoleText('Broker', depth, options, ({ state, count }) => {
    const { startedAt, clock, metrics, settings, version } = broker;
    const since =
      startedAt === undefined ? 'not started' : `up ${uptimeText(clock.now() - startedAt).replace(ONE, '1 $1')}`;
    const { store } = settings;
    const where = store === undefined ? 'state in memory' : `store ${inOneLine(store.name)}`;
    const listeners = broker.listeners().map((listener) => listenerPart(listener, count));
    return [
      `${state(broker.state)}: ${since}, version ${version}, ${where}`,
      `listeners: ${listeners.length === 0 ? 'none' : namedOf(listeners)}`,
      [
        count(metrics.gauge('connections'), 'client'),
        count(metrics.gauge('sessions'), 'session'),
        count(metrics.gauge('subscriptions'), 'subscription'),
        count(metrics.gauge('retained'), 'retained message'),
        count(metrics.gauge('rules'), 'rule')
      ].join(', ')
    ];
  });
}

type BrokerMember = 'state' | 'startedAt' | 'clock' | 'metrics' | 'settings' | 'version' | 'listeners';

function listenerPart(listener: ListenerHandle, count: (number: number, noun: string) => string): string {
  const place = placeOf(listener.address);
  const name = inOneLine(listener.name);
  if (place === undefined) return `${name} (closed)`;
  return `${name} at ${place} (${count(listener.info().currentConnections, 'connection')})`;
}
