import type { Broker, BrokerEvents, EventName } from '../../../lib/index.ts';
import { eventFields } from '../../management/parts/index.ts';
import type { LiveKind } from './live-kind.ts';
import { textIn } from './params.ts';

/** The events that may change the state of a client. */
const EVENTS = [
  'client.connected',
  'client.disconnected',
  'client.rejected',
  'session.created',
  'session.resumed',
  'session.takenover',
  'session.discarded',
  'session.terminated',
  'session.subscribed',
  'session.unsubscribed'
] as const satisfies readonly EventName[];

/** The state of the chart of a session; `gone`: there is none. */
function stateOf(broker: Broker, clientId: string): string {
  return broker.sessions.has(clientId) ? broker.sessions.get(clientId).state : 'gone';
}

/** The state of a client, at the beginning and with each event about its connection and its session. */
export const CLIENT: LiveKind<string> = {
  read: (params) => textIn(params, 'clientId'),
  open({ broker, emit }, clientId) {
    const listeners = EVENTS.map((name) => {
      const listener = (value: BrokerEvents[typeof name]) => {
        if (value.client?.clientId !== clientId) return;
        const fields = eventFields(value, 'none');
        // the state changes in the same turn
        queueMicrotask(() =>
          emit({ at: broker.clock.now(), state: stateOf(broker, clientId), event: name, ...fields })
        );
      };
      broker.on(name, listener);
      return () => broker.off(name, listener);
    });
    emit({ at: broker.clock.now(), state: stateOf(broker, clientId) });
    return {
      close() {
        for (const remove of listeners) remove();
      }
    };
  }
};
