import type { Resource, ResourceContext, ResourceEntry, ResourceType } from '../../lib/adapter.ts';
import { type Attempt, BrokerError, type Clock, SendError } from '../../lib/index.ts';
import { isFinalRefusal, MqttLink, type OpenLink } from '../outgoing/index.ts';
import { DATA_TO_MQTT_BROKER, messageOf } from './mqtt-action.ts';
import { BRIDGE_MQTT_PARAMS, BRIDGE_RPC_PARAMS } from './mqtt-params.ts';
import { type MqttSettings, readMqttSettings } from './mqtt-settings.ts';

/** Maximum number of messages in one delivery. */
const BATCH = 200;
/** Delay after the first failure. */
const BACK_OFF_MS = 250;
/** Maximum number of ids of acknowledged messages that are remembered. */
const MAX_REMEMBERED = 10_000;

/** A remote MQTT server to which rules publish. */
class MqttResource implements Resource {
  readonly outbox: NonNullable<Resource['outbox']>;
  readonly #link: MqttLink;
  readonly #clock: Clock;
  /** Messages of failed deliveries that the server has acknowledged nevertheless. They are not sent again. */
  readonly #acknowledged = new Set<string>();

  constructor(settings: MqttSettings, { clock }: ResourceContext) {
    const { isPersisted, reconnectMs, retryMs } = settings;
    this.#link = new MqttLink(settings, clock);
    this.#clock = clock;
    this.outbox = {
      isPersisted,
      batch: BATCH,
      timeout: retryMs,
      backOff: Math.min(BACK_OFF_MS, reconnectMs),
      maxBackOff: reconnectMs
    };
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.#link.connected(signal);
  }

  async send(entries: readonly ResourceEntry[], attempt: Attempt): Promise<void> {
    const link = await this.#link.connected(attempt.signal);
    // messages without a timely acknowledgement would stay in flight for the life of the connection
    attempt.onAbort(() => this.#link.drop(link));
    const done = entries.filter(({ id }) => this.#acknowledged.delete(id));
    let failure: Error | undefined;
    link.stream.cork();
    const deliveries = entries
      .filter((entry) => !done.includes(entry))
      .map((entry) =>
        this.#publish(entry, link).then(
          () => done.push(entry),
          (error: Error) => (failure ??= error)
        )
      );
    link.stream.uncork();
    await Promise.all(deliveries);
    attempt.onAbort(undefined);
    if (failure === undefined) return;
    for (const { id } of done) this.#remember(id);
    // possibly only one of several messages is refused, so each is then sent alone
    if (entries.length === 1 && isFinalRefusal(failure))
      throw new SendError(failure.message, { isFinal: true, cause: failure });
    throw failure;
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  async #publish({ content }: ResourceEntry, { client }: OpenLink): Promise<void> {
    const { packet, expiresAt } = messageOf(content as Buffer);
    const { topic, payload, properties } = packet;
    const leftMs = expiresAt - this.#clock.now();
    if (leftMs <= 0) throw new BrokerError('MESSAGE_EXPIRED', `a message to "${topic}" has expired`);
    const { maximumQoS = 1, retainAvailable = 1 } = client.connack.properties ?? {};
    const messageExpiryInterval = leftMs === Infinity ? undefined : Math.ceil(leftMs / 1000);
    await client.publish(topic, payload, {
      qos: maximumQoS === 0 ? 0 : 1,
      retain: packet.retain && retainAvailable === 1,
      properties: { ...properties, messageExpiryInterval }
    });
  }

  #remember(id: string): void {
    this.#acknowledged.add(id);
    if (this.#acknowledged.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#acknowledged; // the entry may have left the outbox
    this.#acknowledged.delete(oldest);
  }
}

/**
 * The resource type `bridge_mqtt` of rules, with its action `data_to_mqtt_broker`:
 * `createBroker({ rules: { resources: [mqttBridge()] } })`.
 *
 * Each output of a rule becomes a message with QoS 1; those of one rule arrive in order. A resource has one connection.
 * Messages stay in its outbox until the server has acknowledged them; a message whose acknowledgement is lost is sent
 * again.
 */
export function mqttBridge(): ResourceType {
  return {
    name: 'bridge_mqtt',
    provider: 'emqx_bridge_mqtt',
    title: { en: 'MQTT Bridge', zh: 'MQTT 桥接' },
    description: { en: 'Messages to a remote MQTT server', zh: '向远程 MQTT 服务器发送消息' },
    params: BRIDGE_MQTT_PARAMS,
    actions: [DATA_TO_MQTT_BROKER],
    make: (config, context) => new MqttResource(readMqttSettings(config, context.id), context)
  };
}

const RPC_REASON =
  'bridge_rpc is a connection between nodes of the original product, which this broker does not have; use a resource of type bridge_mqtt';

/** A resource that cannot be reached. */
const UNREACHABLE: Resource = {
  check: () => {
    throw new BrokerError('RESOURCE_DOWN', RPC_REASON);
  },
  send: () => {
    throw new SendError(RPC_REASON, { isFinal: true });
  },
  close: () => undefined
};

/**
 * The resource type `bridge_rpc`, for configurations that contain it: its resources can be created, but are never
 * alive, and the action fails.
 */
export function rpcBridge(): ResourceType {
  return {
    name: 'bridge_rpc',
    provider: 'emqx_bridge_mqtt',
    title: { en: 'EMQX Bridge', zh: 'EMQX 桥接' },
    description: {
      en: 'Connection between nodes of the original product, which is not available',
      zh: '原产品节点之间的桥接，不可用'
    },
    params: BRIDGE_RPC_PARAMS,
    actions: [DATA_TO_MQTT_BROKER],
    make: () => UNREACHABLE
  };
}
