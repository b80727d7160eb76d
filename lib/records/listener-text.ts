import { consoleText } from '../base/symbols.ts';
import { type ListenerHandle, placeOf } from './listener.ts';

/** The text that `console.log` prints for a listener: its address and its connections. For the method `INSPECT` of a listener. */
export function listenerText(listener: ListenerHandle, depth: number, options: object): string {
  return consoleText('Listener', depth, options, ({ quoted, state, count }) => {
    const { name, address, protocol } = listener;
    const { currentConnections, maxConnections, shutdownCount } = listener.info();
    const place = placeOf(address);
    const ended = Object.entries(shutdownCount).map(([reason, number]) => `${reason} ${number}`);
    return [
      `${quoted(name)} ${place === undefined ? state('closed') : `${state('open')} at ${place}`}`,
      `protocol ${protocol}, ${count(currentConnections, 'connection')}, ${maxConnections === 0 ? 'no limit' : `at most ${maxConnections}`}`,
      `ended connections: ${ended.length === 0 ? 'none' : ended.join(', ')}`
    ];
  });
}
