/** The events from which rules can select. */
export type RuleEventName =
  | 'message.publish'
  | 'message.delivered'
  | 'message.acked'
  | 'message.dropped'
  | 'client.connected'
  | 'client.disconnected'
  | 'session.subscribed'
  | 'session.unsubscribed'
  | 'delivery.dropped'
  | 'client.connack'
  | 'client.check_acl_complete'
  | 'alarm.activated'
  | 'alarm.deactivated';
