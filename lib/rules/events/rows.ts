// A row for each event that FROM can name: its columns in the documented order, with a function for each, and the
// texts and columns that forms of the management interface show. Columns are evaluated when a statement reads them,
// and once for all rules of an event, so a function must not depend on a rule and must not keep the event. A value
// that the broker does not have is absent (`unknown`), never empty.

import type { PresentAlarm } from '../../records/alarm.ts';
import { innerFilter } from '../../topics/topic.ts';
import { CLIENT, hostOf } from './client-columns.ts';
import type { Columns } from './column.ts';
import type { RuleEventName } from './event-name.ts';
import { DELIVERY, MESSAGE, PUBLISHER } from './message-columns.ts';
import { propertiesColumn } from './properties.ts';
import { connackReasonName, disconnectReasonName } from './reason-names.ts';
import { type RuleEventEntry, row } from './row.ts';

const OF_CLIENT = ['clientid', 'username'];
const OF_SUBSCRIPTION = [...OF_CLIENT, 'topic', 'qos'];
const OF_MESSAGE = [...OF_SUBSCRIPTION, 'payload'];
const OF_DELIVERY = ['from_clientid', 'from_username', ...OF_MESSAGE];
/** The receiver is a client other than the publisher. */
const RECEIVER = { clientid: 'c_emqx_2', username: 'u_emqx_2' };

const unknown = () => undefined;

/** The columns of both alarm events. */
const ALARM = {
  name: ({ alarm }) => alarm.id,
  severity: ({ alarm }) => alarm.severity,
  title: ({ alarm }) => alarm.title,
  message: ({ alarm }) => alarm.summary,
  activated_at: ({ alarm }) => alarm.raisedAt
} as const satisfies Columns<{ readonly alarm: PresentAlarm }>;

/**
 * The events from which rules can select, in the documented order.
 *
 * A column is absent if the broker does not know its value. `puback_props`, `disconn_props` and `unsub_props` are
 * always absent, because the properties of these packets do not reach the events. `conn_props` contains the current
 * Session Expiry Interval, the Authentication Method, the Maximum Packet Size and the user properties; `sub_props`
 * contains the Subscription Identifier. A message whose publisher has left, or that has waited for its receiver, has no
 * `peerhost` of the publisher.
 */
export const RULE_EVENTS: Readonly<Record<RuleEventName, RuleEventEntry>> = {
  'message.publish': row('message.publish', 'message.publish', {
    columns: {
      id: MESSAGE.id,
      clientid: PUBLISHER.clientid,
      username: PUBLISHER.username,
      payload: MESSAGE.payload,
      peerhost: PUBLISHER.peerhost,
      topic: MESSAGE.topic,
      qos: MESSAGE.qos,
      flags: MESSAGE.flags,
      headers: MESSAGE.headers,
      pub_props: MESSAGE.pub_props,
      publish_received_at: MESSAGE.publish_received_at
    },
    title: { en: 'message publish', zh: '消息发布' },
    description: { en: 'A message has been published and is about to be routed.', zh: '消息已发布，即将被路由。' },
    testNames: OF_MESSAGE,
    testValues: {},
    example: `SELECT payload.msg as msg FROM "t/#" WHERE msg = 'hello'`
  }),
  'message.delivered': row('message.delivered', 'message.delivered', {
    columns: {
      id: MESSAGE.id,
      clientid: DELIVERY.clientid,
      username: DELIVERY.username,
      from_clientid: DELIVERY.from_clientid,
      from_username: DELIVERY.from_username,
      payload: MESSAGE.payload,
      peerhost: DELIVERY.peerhost,
      topic: MESSAGE.topic,
      qos: DELIVERY.qos,
      flags: DELIVERY.flags,
      pub_props: MESSAGE.pub_props,
      publish_received_at: MESSAGE.publish_received_at
    },
    title: { en: 'message delivered', zh: '消息已投递' },
    description: { en: 'A message has been sent to a subscriber.', zh: '消息已发送给订阅者。' },
    testNames: OF_DELIVERY,
    testValues: RECEIVER,
    example: forTopics('message_delivered')
  }),
  'message.acked': row('message.acked', 'message.acked', {
    columns: {
      id: MESSAGE.id,
      clientid: DELIVERY.clientid,
      username: DELIVERY.username,
      from_clientid: DELIVERY.from_clientid,
      from_username: DELIVERY.from_username,
      payload: MESSAGE.payload,
      peerhost: DELIVERY.peerhost,
      topic: MESSAGE.topic,
      qos: DELIVERY.qos,
      flags: DELIVERY.flags,
      pub_props: MESSAGE.pub_props,
      puback_props: unknown,
      publish_received_at: MESSAGE.publish_received_at
    },
    title: { en: 'message acked', zh: '消息已确认' },
    description: {
      en: 'A subscriber has acknowledged a message (PUBACK, or PUBREC for QoS 2).',
      zh: '订阅者已确认收到消息（QoS 1 为 PUBACK，QoS 2 为 PUBREC）。'
    },
    testNames: OF_DELIVERY,
    testValues: RECEIVER,
    example: forTopics('message_acked')
  }),
  'message.dropped': row('message.dropped', 'message.dropped', {
    accepts: ({ client }) => client === undefined,
    columns: {
      id: MESSAGE.id,
      clientid: PUBLISHER.clientid,
      username: PUBLISHER.username,
      payload: MESSAGE.payload,
      peerhost: PUBLISHER.peerhost,
      topic: MESSAGE.topic,
      qos: MESSAGE.qos,
      flags: MESSAGE.flags,
      pub_props: MESSAGE.pub_props,
      reason: ({ reason }) => reason,
      publish_received_at: MESSAGE.publish_received_at
    },
    title: { en: 'message dropped', zh: '消息丢弃' },
    description: {
      en: 'A message has been dropped and no subscriber receives it, for example because there are no subscribers.',
      zh: '消息被丢弃，没有订阅者会收到它，例如因为该主题没有订阅者。'
    },
    testNames: OF_MESSAGE,
    testValues: { reason: 'no_subscribers' },
    example: forTopics('message_dropped')
  }),
  'client.connected': row('client.connected', 'client.connected', {
    columns: {
      clientid: CLIENT.clientid,
      username: CLIENT.username,
      mountpoint: CLIENT.mountpoint,
      peername: CLIENT.peername,
      sockname: CLIENT.sockname,
      proto_name: CLIENT.proto_name,
      proto_ver: CLIENT.proto_ver,
      keepalive: CLIENT.keepalive,
      clean_start: CLIENT.clean_start,
      expiry_interval: CLIENT.expiry_interval,
      is_bridge: CLIENT.is_bridge,
      receive_maximum: CLIENT.receive_maximum,
      conn_props: CLIENT.conn_props,
      connected_at: CLIENT.connected_at
    },
    title: { en: 'client connected', zh: '连接建立' },
    description: {
      en: 'A client has connected: it has been sent a successful CONNACK.',
      zh: '客户端已连接：已向其发送成功的 CONNACK。'
    },
    testNames: [...OF_CLIENT, 'peername'],
    testValues: {}
  }),
  'client.disconnected': row('client.disconnected', 'client.disconnected', {
    columns: {
      clientid: CLIENT.clientid,
      username: CLIENT.username,
      peername: CLIENT.peername,
      sockname: CLIENT.sockname,
      proto_name: CLIENT.proto_name,
      proto_ver: CLIENT.proto_ver,
      disconn_props: unknown,
      disconnected_at: CLIENT.disconnected_at,
      reason: ({ reason, client }) => disconnectReasonName(reason, client.transportInfo)
    },
    title: { en: 'client disconnected', zh: '连接断开' },
    description: { en: 'The connection of a client has ended.', zh: '客户端的连接已断开。' },
    testNames: [...OF_CLIENT, 'reason'],
    testValues: { reason: 'normal' }
  }),
  'session.subscribed': row('session.subscribed', 'session.subscribed', {
    columns: {
      clientid: CLIENT.clientid,
      username: CLIENT.username,
      peerhost: CLIENT.peerhost,
      topic: ({ filter }) => innerFilter(filter),
      qos: ({ options }) => options.qos,
      sub_props: ({ options: { id } }) => propertiesColumn(id === undefined ? {} : { subscriptionIdentifier: [id] })
    },
    title: { en: 'session subscribed', zh: '会话订阅完成' },
    description: { en: 'A client has subscribed to a topic filter.', zh: '客户端已订阅一个主题过滤器。' },
    testNames: OF_SUBSCRIPTION,
    testValues: {},
    example: forTopics('session_subscribed')
  }),
  'session.unsubscribed': row('session.unsubscribed', 'session.unsubscribed', {
    columns: {
      clientid: CLIENT.clientid,
      username: CLIENT.username,
      peerhost: CLIENT.peerhost,
      topic: ({ filter }) => innerFilter(filter),
      qos: ({ options }) => options.qos,
      unsub_props: unknown
    },
    title: { en: 'session unsubscribed', zh: '会话取消订阅完成' },
    description: { en: 'A subscription of a client has been removed.', zh: '客户端的一个订阅已被取消。' },
    testNames: OF_SUBSCRIPTION,
    testValues: {},
    example: forTopics('session_unsubscribed')
  }),
  'delivery.dropped': row('delivery.dropped', 'message.dropped', {
    accepts: ({ client }) => client !== undefined,
    columns: {
      id: MESSAGE.id,
      clientid: ({ client }) => client?.clientId,
      username: ({ client }) => client?.username,
      from_clientid: PUBLISHER.clientid,
      from_username: PUBLISHER.username,
      payload: MESSAGE.payload,
      peerhost: ({ client }) => hostOf(client),
      topic: MESSAGE.topic,
      qos: MESSAGE.qos,
      flags: MESSAGE.flags,
      pub_props: MESSAGE.pub_props,
      reason: ({ reason }) => reason,
      publish_received_at: MESSAGE.publish_received_at
    },
    title: { en: 'delivery dropped', zh: '消息投递丢弃' },
    description: {
      en: 'A subscriber does not receive a message, for example because its queue is full.',
      zh: '某个订阅者收不到消息，例如因为它的消息队列已满。'
    },
    testNames: [...OF_DELIVERY, 'reason'],
    testValues: { ...RECEIVER, reason: 'queue_full' },
    example: forTopics('delivery_dropped')
  }),
  'client.connack': row('client.connack', 'client.connack', {
    columns: {
      reason_code: ({ reasonCode }) => connackReasonName(reasonCode),
      clientid: CLIENT.clientid,
      clean_start: CLIENT.clean_start,
      username: CLIENT.username,
      peername: CLIENT.peername,
      sockname: CLIENT.sockname,
      proto_name: CLIENT.proto_name,
      proto_ver: CLIENT.proto_ver,
      keepalive: CLIENT.keepalive,
      expiry_interval: CLIENT.expiry_interval,
      conn_props: CLIENT.conn_props
    },
    title: { en: 'client connack', zh: '连接确认' },
    description: {
      en: 'The broker answers a CONNECT, with success or a refusal.',
      zh: '服务端应答 CONNECT：接受或拒绝连接。'
    },
    testNames: [...OF_CLIENT, 'reason_code'],
    testValues: {}
  }),
  'client.check_acl_complete': row('client.check_acl_complete', 'client.check_acl_complete', {
    columns: {
      clientid: CLIENT.clientid,
      username: CLIENT.username,
      peerhost: CLIENT.peerhost,
      topic: ({ action, topic }) => (action === 'subscribe' ? innerFilter(topic) : topic),
      action: ({ action }) => action,
      is_cache: ({ isCached }) => isCached,
      result: ({ isAllowed }) => (isAllowed ? 'allow' : 'deny')
    },
    title: { en: 'client check acl complete', zh: '访问控制检查完成' },
    description: {
      en: 'It has been decided whether a client may publish or subscribe to a topic.',
      zh: '已决定客户端是否有权发布或订阅某个主题。'
    },
    testNames: [...OF_CLIENT, 'topic', 'action', 'result'],
    testValues: {}
  }),
  'alarm.activated': row('alarm.activated', 'alarm.raised', {
    columns: {
      name: ALARM.name,
      severity: ALARM.severity,
      title: ALARM.title,
      message: ALARM.message,
      activated_at: ALARM.activated_at
    },
    title: { en: 'alarm activated', zh: '告警产生' },
    description: { en: 'A condition has begun that an operator should know.', zh: '出现了运维人员应当知晓的状况。' },
    testNames: ['name', 'severity', 'message'],
    testValues: {},
    spelling: 'sys/alarm_activated'
  }),
  'alarm.deactivated': row('alarm.deactivated', 'alarm.cleared', {
    columns: {
      name: ALARM.name,
      severity: ALARM.severity,
      title: ALARM.title,
      message: ALARM.message,
      activated_at: ALARM.activated_at,
      deactivated_at: ({ alarm }) => alarm.clearedAt
    },
    title: { en: 'alarm deactivated', zh: '告警解除' },
    description: { en: 'The condition of an alarm has ended.', zh: '告警的状况已结束。' },
    testNames: ['name', 'severity', 'message'],
    testValues: {},
    spelling: 'sys/alarm_deactivated'
  })
};

/** A statement for the messages of certain topics. */
function forTopics(event: string): string {
  return `SELECT * FROM "$events/${event}" WHERE topic =~ 't/#'`;
}
