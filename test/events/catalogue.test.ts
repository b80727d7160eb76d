import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENT_NAMES, EVENTS, type EventEntry } from '../../lib/events/catalogue.ts';
import { EVENT_ABOUT } from '../../lib/events/event-texts.ts';

/** Returns the events with a value in a column, as pairs of name and value. */
function column<C extends 'action' | 'notice'>(name: C): [string, EventEntry[C]][] {
  return EVENT_NAMES.flatMap((event) => {
    const value = (EVENTS[event] as EventEntry)[name];
    return value === undefined ? [] : [[event, value] as [string, EventEntry[C]]];
  });
}

describe('The catalogue of events', () => {
  it('contains the thirteen documented events of webhooks with their action values', () => {
    assert.deepEqual(
      new Map(column('action')),
      new Map([
        ['client.connect', 'client_connect'],
        ['client.connack', 'client_connack'],
        ['client.connected', 'client_connected'],
        ['client.disconnected', 'client_disconnected'],
        ['client.subscribe', 'client_subscribe'],
        ['client.unsubscribe', 'client_unsubscribe'],
        ['session.subscribed', 'session_subscribed'],
        ['session.unsubscribed', 'session_unsubscribe'],
        ['session.terminated', 'session_terminated'],
        ['message.publish', 'message_publish'],
        ['message.delivered', 'message_delivered'],
        ['message.acked', 'message_acked'],
        ['message.dropped', 'message_dropped']
      ])
    );
  });

  it('contains the documented topics of the events of rules', () => {
    const topics = EVENT_NAMES.flatMap((name) => (EVENTS[name] as EventEntry).ruleTopics);
    assert.deepEqual(
      topics.sort(),
      [
        ...['message_publish', 'message_delivered', 'message_acked', 'message_dropped', 'delivery_dropped'],
        ...['client_connack', 'client_connected', 'client_disconnected', 'client_check_acl_complete'],
        ...['session_subscribed', 'session_unsubscribed', 'alarm_activated', 'alarm_deactivated']
      ]
        .map((name) => `$events/${name}`)
        .sort()
    );
  });

  it('contains the documented topics of notices under $SYS', () => {
    assert.deepEqual(column('notice'), [
      ['client.connected', 'clients/{clientid}/connected'],
      ['client.disconnected', 'clients/{clientid}/disconnected'],
      ['alarm.raised', 'alarms/alert'],
      ['alarm.cleared', 'alarms/clear']
    ]);
  });

  it('explains every event in sentences', () => {
    for (const name of EVENT_NAMES) assert.match(EVENT_ABOUT[name], /^[A-Z].*\.$/);
  });
});
