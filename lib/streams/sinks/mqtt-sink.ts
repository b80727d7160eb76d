import { InvalidInput } from '../../base/errors.ts';
import type { FieldTable } from '../../base/fields.ts';
import { shownUrl } from '../../base/hidden-text.ts';
import type { QoS } from '../../packets/types.ts';
import { checkTopicName } from '../../topics/topic.ts';
import type { StreamMessages } from '../host.ts';
import type { OpenSink, SinkType } from '../types.ts';

const REMOTE = 'Only for another broker.';

/** The properties of the sink `mqtt`. Those that apply only to another broker are also accepted without a server. */
const MQTT_SINK_PROPERTIES: FieldTable = {
  server: {
    type: 'string',
    about:
      'URL of another broker, such as tcp://host:1883. Default: this broker, without a connection, as with the address of one of its listeners.'
  },
  topic: { type: 'string', required: true, isTemplate: true, about: 'Topic.' },
  qos: { type: 'number', default: 0, choices: [0, 1, 2], about: 'Quality of service.' },
  retained: { type: 'boolean', default: false, about: 'Publish retained messages.' },
  clientId: { type: 'string', about: `Client id. Default: a random one. ${REMOTE}` },
  protocolVersion: {
    type: 'string',
    default: '3.1.1',
    choices: ['3.1', '3.1.1', '5', '5.0'],
    about: `Version of MQTT. ${REMOTE}`
  },
  username: { type: 'string', about: `User name. ${REMOTE}` },
  password: { type: 'string', isSecret: true, about: `Password. ${REMOTE}` },
  certificationPath: { type: 'string', about: `Path of a client certificate. ${REMOTE}` },
  privateKeyPath: { type: 'string', about: `Path of its private key. ${REMOTE}` },
  rootCaPath: { type: 'string', about: `Path of certificate authorities. ${REMOTE}` },
  insecureSkipVerify: {
    type: 'boolean',
    default: false,
    about: `Do not verify the certificate of the server. ${REMOTE}`
  },
  connectionSelector: {
    type: 'string',
    about: 'Id of a connection whose properties it takes over. It must exist.'
  }
};

/** Dependencies of the sink `mqtt` on the service. */
interface MqttSinkHost {
  readonly messages: Pick<StreamMessages, 'publish'> & Partial<Pick<StreamMessages, 'isOwn'>>;
  /** The type that publishes at another broker; undefined if none is registered. */
  remote?(): SinkType | undefined;
}

/** A sink that publishes at this broker. */
interface LocalSink extends OpenSink {
  readonly isLocal: true;
}

/**
 * Publishes outputs as messages of this broker, without a connection; with a server that is not a listener of this
 * broker, at that server.
 */
export function mqttSink({ messages, remote }: MqttSinkHost): SinkType {
  return {
    name: 'mqtt',
    about: 'Publishes messages at this broker, or with a server at another one.',
    properties: MQTT_SINK_PROPERTIES,
    open(setup) {
      const { properties, ruleId, causeId = ruleId } = setup;
      const text = String(properties.topic);
      const check = topicCheck(text);
      if (!text.includes('{{')) check(text);
      const { server, qos, retained } = properties as {
        readonly server?: string;
        readonly qos: QoS;
        readonly retained: boolean;
      };
      if (server !== undefined && server !== '' && messages.isOwn?.(server) !== true) {
        const type = remote?.();
        if (type !== undefined) return type.open(setup);
        const shown = shownUrl(server);
        const fault = `mqtt sink: property server is ${shown}, but publishing at other brokers needs mqttSink() of embermq/streams/mqtt`;
        throw new InvalidInput('PROPERTY_INVALID', 'server', 'no server, or a registered sink for it', shown, fault);
      }
      const sink: LocalSink = {
        isLocal: true,
        send(item) {
          const topic = String(item.property('topic'));
          check(topic);
          const input = { topic, payload: item.text ?? item.bytes, qos, retain: retained };
          const sent = messages.publish(input, causeId, item.cause);
          return typeof sent === 'number' ? undefined : sent.then(() => undefined);
        },
        close: () => undefined
      };
      return sink;
    }
  };
}

/**
 * Make a check of the topics of a sink. A topic is checked only if it differs from the previous one.
 * @param text the property: a topic, or a template whose values cannot begin a topic with "$"
 */
function topicCheck(text: string): (topic: string) => void {
  const mayBeReserved = text.startsWith('$') && !text.split('/', 1)[0].includes('{{');
  let last: string | undefined;
  return (topic) => {
    if (topic === last) return;
    const reserved = `topic ${JSON.stringify(topic)}: only a topic whose first level contains no template may begin with "$"`;
    const fault = checkTopicName(topic) ?? (topic.startsWith('$') && !mayBeReserved ? reserved : undefined);
    if (fault !== undefined)
      throw new InvalidInput('PROPERTY_INVALID', 'topic', 'a topic name', topic, `mqtt sink: ${fault}`);
    last = topic;
  };
}
