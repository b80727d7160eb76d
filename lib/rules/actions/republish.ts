import type { FieldTable } from '../../base/fields.ts';
import type { MessageInput } from '../../packets/message.ts';
import { causedBy, countCaused, RulePublisher } from '../../packets/named-publisher.ts';
import type { QoS } from '../../packets/types.ts';
import { isObject, type Value } from '../../sql/values.ts';
import { CatalogueEvent } from '../events/event.ts';
import { messageProperties } from '../events/properties.ts';
import type { RulesHost } from '../host.ts';
import { compileBytes, compileTopic } from '../template.ts';
import type { ActionContext, ActionType, Params, RuleEvent } from '../types.ts';

const PARAMS: FieldTable = {
  target_topic: {
    type: 'string',
    required: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of rules
    default: 'repub/to/${clientid}',
    title: 'Target Topic',
    about: 'The topic of the new message. It may contain placeholders, whose values cannot begin a topic with "$".',
    zh: { title: '目的主题', about: '新消息的主题，可以包含占位符，但占位符的值不能使主题以 "$" 开头。' }
  },
  target_qos: {
    type: 'number',
    required: true,
    default: 0,
    choices: [-1, 0, 1, 2],
    title: 'Target QoS',
    about: 'The QoS of the new message; -1: that of the original message, or 0 if there is none.',
    zh: { title: '目的 QoS', about: '新消息的 QoS；-1 表示使用原消息的 QoS，没有原消息时为 0。' }
  },
  payload_tmpl: {
    type: 'string',
    input: 'textarea',
    required: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of rules
    default: '${payload}',
    title: 'Payload Template',
    about: 'The payload of the new message. It may contain placeholders.',
    zh: { title: '消息内容模板', about: '新消息的内容，可以包含占位符。' }
  },
  target_retain: {
    type: 'boolean',
    required: false,
    title: 'Retain',
    about: 'Whether the new message is retained. Default: as the original message.',
    zh: { title: '保留消息', about: '新消息是否为保留消息；不设置时与原消息相同。' }
  },
  mqtt_properties: {
    type: 'boolean',
    required: false,
    default: true,
    title: 'MQTT 5.0 properties',
    about: 'Whether the new message has the MQTT 5.0 properties of the original message.',
    zh: { title: 'MQTT 5.0 属性', about: '新消息是否带有原消息的 MQTT 5.0 属性。' }
  }
};

/** Minimum time between records of missing values, in milliseconds. */
const RECORD_MS = 100;

/** The action that publishes a new message. */
export function republishAction(host: RulesHost, app: string): ActionType {
  return {
    name: 'republish',
    app,
    category: 'data_forward',
    title: { en: 'Republish', zh: '消息重新发布' },
    description: { en: 'Publish a message to another topic.', zh: '将消息发布到另一个主题。' },
    params: PARAMS,
    create: (params, { actionId, ruleId }) => new Republish(host, { actionId, ruleId }, params)
  };
}

class Republish {
  readonly #host: RulesHost;
  /** Identifies the action among the causes of messages. */
  readonly #key: string;
  readonly #ruleId: string;
  readonly #topic: (output: Value) => string;
  /** Name of a value of the topic that the last output does not have. */
  #missing: string | undefined = undefined;
  /** When a missing value was recorded last, in monotonic milliseconds. */
  #recordedMs = -Infinity;
  readonly #payload: (output: Value) => string | Buffer;
  readonly #qos: number;
  readonly #retain: boolean | undefined;
  readonly #hasProperties: boolean;

  constructor(host: RulesHost, { actionId, ruleId }: Pick<ActionContext, 'actionId' | 'ruleId'>, params: Params) {
    this.#host = host;
    this.#key = `action/${actionId}`;
    this.#ruleId = ruleId;
    this.#topic = compileTopic('target_topic', params.target_topic as string, '', (name) => {
      this.#missing = name;
    });
    this.#payload = compileBytes(params.payload_tmpl as string);
    this.#qos = params.target_qos as number;
    this.#retain = params.target_retain as boolean | undefined;
    this.#hasProperties = params.mqtt_properties !== false;
  }

  /** @throws InvalidInput TOPIC_NAME_INVALID; BrokerError RULE_LOOP; errors of publishing */
  run(output: Value, event: RuleEvent): undefined | Promise<unknown> {
    this.#missing = undefined;
    const topic = this.#topic(output);
    if (this.#missing !== undefined) this.#recordMissing(this.#missing, topic, event);
    const input: MessageInput = {
      topic,
      payload: this.#payload(output),
      qos: (this.#qos === -1 ? qosOf(event) : this.#qos) as QoS,
      retain: this.#retain ?? isRetained(event),
      ...(this.#hasProperties && propertiesOf(event))
    };
    const published = this.#host.republish(input, this.#publisherFor(event));
    return typeof published === 'number' ? undefined : published;
  }

  /** Record that a value of a topic is missing, at most once in 100 ms. */
  #recordMissing(name: string, topic: string, event: RuleEvent): void {
    const { clock } = this.#host;
    if (clock.monotonic() - this.#recordedMs < RECORD_MS) return;
    this.#recordedMs = clock.monotonic();
    const [from, publisher] = ['topic', 'clientid'].map((column) => textIn(event.column(column)));
    const detail = `${JSON.stringify(name)} is missing, so the message was published to ${JSON.stringify(topic)}`;
    this.#host.recorded('field_missing', { rule: this.#ruleId, topic: from, publisher, detail });
  }

  /** @throws BrokerError RULE_LOOP */
  #publisherFor(event: RuleEvent): RulePublisher {
    const isOfCatalogue = event instanceof CatalogueEvent;
    const cause = isOfCatalogue ? event.message?.origin : undefined;
    const chain = causedBy(this.#key, cause instanceof RulePublisher ? cause.chain : undefined);
    const cascade = isOfCatalogue ? event.cascade : { count: 0 };
    countCaused(cascade);
    return new RulePublisher(chain, cascade, this.#ruleId);
  }
}

function textIn(value: Value): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The QoS of the message of an event. Without `flags`, `qos` is that of a subscription. */
function qosOf(event: RuleEvent): Value {
  return event.column('flags') === undefined ? 0 : (event.column('qos') ?? 0);
}

function isRetained(event: RuleEvent): boolean {
  if (event instanceof CatalogueEvent && event.name === 'message.publish') return event.message?.retain ?? false;
  const flags = event.column('flags');
  return isObject(flags ?? null) && (flags as { retain?: unknown }).retain === true;
}

/** The properties of the message of an event, for a new message. */
function propertiesOf(event: RuleEvent): Pick<MessageInput, 'properties'> | undefined {
  if (event instanceof CatalogueEvent) {
    const { message } = event;
    return message === undefined || message.propertiesAt === message.payloadAt || message.layout === 4
      ? undefined
      : { properties: message.properties };
  }
  return { properties: messageProperties(event.column('pub_props')) };
}
