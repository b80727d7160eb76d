import {
  type ActionType,
  compilePayload,
  compileTopic,
  encode,
  messageProperties,
  PacketReader
} from '../../lib/adapter.ts';
import {
  BrokerError,
  checkTopicName,
  InvalidInput,
  type Properties,
  type PublishPacket,
  type RuleEvent,
  type Value
} from '../../lib/index.ts';
import { DATA_TO_MQTT_BROKER_PARAMS } from './mqtt-params.ts';

/** The events about a message. */
const MESSAGE_EVENTS: readonly string[] = [
  'message.publish',
  'message.delivered',
  'message.acked',
  'message.dropped',
  'delivery.dropped'
];

/** A message to publish, as prepared by an action. */
interface PreparedMessage {
  /** In the form of MQTT 5.0, with QoS 1. */
  readonly packet: PublishPacket;
  /** Wall-clock milliseconds; Infinity: no expiry. */
  readonly expiresAt: number;
}

/** The action `data_to_mqtt_broker`: publishes a message for each output. */
export const DATA_TO_MQTT_BROKER: ActionType = {
  name: 'data_to_mqtt_broker',
  app: 'emqx_bridge_mqtt',
  for: 'message.publish',
  types: ['bridge_mqtt', 'bridge_rpc'],
  category: 'data_forward',
  title: { en: 'Data bridge to MQTT Broker', zh: '桥接数据到 MQTT Broker' },
  description: {
    en: 'Publish the output of the rule to a remote MQTT server.',
    zh: '将规则的输出发布到远程 MQTT 服务器。'
  },
  params: DATA_TO_MQTT_BROKER_PARAMS,
  create(params, { node, config }) {
    const { payload_tmpl: template, forward_topic: forward } = params as {
      readonly [name: string]: string | undefined;
    };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the documented placeholder
    const prefix = String(config.mountpoint ?? '').replaceAll('${node}', () => node);
    const payloadOf = compilePayload(template);
    const topicOf =
      forward === undefined || forward === ''
        ? (_: Value, event: RuleEvent) => prefixed(prefix, event)
        : compileTopic('forward_topic', forward, prefix);
    return {
      prepare(output, event) {
        checkEvent(event);
        return contentOf(topicOf(output, event), payloadOf(output), event);
      }
    };
  }
};

function checkEvent({ name }: RuleEvent): void {
  if (!MESSAGE_EVENTS.includes(name))
    throw new BrokerError('ACTION_FAILED', `data_to_mqtt_broker forwards messages, but the event is ${name}`);
}

/** The topic of the message of an event, after a mountpoint. @throws InvalidInput TOPIC_NAME_INVALID */
function prefixed(mountpoint: string, event: RuleEvent): string {
  const topic = mountpoint + String(event.column('topic'));
  const fault = checkTopicName(topic);
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'mountpoint', 'a topic name', topic, fault);
  return topic;
}

/** The content of an outbox entry: the expiry time of the message in 8 bytes, and the PUBLISH. */
function contentOf(topic: string, payload: string | Buffer, event: RuleEvent): Buffer {
  const properties = messageProperties(event.column('pub_props'));
  const flags = event.column('flags') as { readonly retain?: Value } | undefined;
  const packet: PublishPacket = {
    ...{ cmd: 'publish', qos: 1, dup: false, messageId: 1, topic, properties },
    payload: typeof payload === 'string' ? Buffer.from(payload) : payload,
    retain: flags?.retain === true
  };
  const head = Buffer.alloc(8);
  head.writeDoubleBE(expiryOf(properties, event));
  return Buffer.concat([head, encode(packet, 5)]);
}

/** Read the content of an entry. @throws ProtocolError if it is damaged */
export function messageOf(content: Buffer): PreparedMessage {
  const reader = new PacketReader({ side: 'server', version: 5 });
  reader.feed(content.subarray(8));
  return { packet: reader.next() as PublishPacket, expiresAt: content.readDoubleBE() };
}

function expiryOf({ messageExpiryInterval: seconds }: Properties, event: RuleEvent): number {
  const receivedAt = event.column('publish_received_at');
  return seconds === undefined || typeof receivedAt !== 'number' ? Infinity : receivedAt + seconds * 1000;
}
