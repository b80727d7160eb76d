import { consoleText, inOneLine } from '../../base/symbols.ts';
import { VERSION_NAMES } from '../../packets/version-names.ts';
import { placeOf } from '../../records/listener.ts';
import type { SessionHandle } from './session-handle.ts';

/** Subscriptions that are named. */
const MAX_NAMED = 4;

/** The text that `console.log` prints for a session: its state, its client, and what waits in it. */
export function sessionText(session: SessionHandle, depth: number, options: object): string {
  return consoleText('Session', depth, options, ({ quoted, state, count }) => {
    const { client, transportInfo } = session;
    const { transport, listener, remoteAddress: host, remotePort: port } = transportInfo;
    const place = host === undefined ? undefined : placeOf({ host, port });
    const { mqueueLen, inflight, subscriptions } = session.counters();
    const filters: string[] = [];
    for (const { filter } of session.subscriptions()) {
      if (filters.length === MAX_NAMED) break;
      filters.push(quoted(filter));
    }
    const more = subscriptions > filters.length ? ', ...' : '';
    return [
      `${quoted(session.clientId)} ${state(session.state)}`,
      [
        VERSION_NAMES[client.protocolVersion],
        listener === undefined ? transport : inOneLine(listener),
        ...(place === undefined ? [] : [`from ${place}`])
      ].join(', '),
      `${count(subscriptions, 'subscription')}${filters.length === 0 ? '' : `: ${filters.join(', ')}${more}`}`,
      `${count(mqueueLen, 'message')} queued, ${inflight} in flight`
    ];
  });
}
