import { randomUUID } from 'node:crypto';
import type { OpenSink, SinkItem, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { BrokerError, type Clock, type QoS, SendError } from '../../../lib/index.ts';
import { isFinalRefusal, type LinkSettings, MqttLink, type OpenLink } from '../../outgoing/index.ts';
import { TRUST_OR_SKIP_REMEDY } from '../tls-files.ts';
import { readMqttSettings } from './settings.ts';

/** Time limit for connecting and for an acknowledgement. */
const SEND_MS = 20_000;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 30_000;

/**
 * The sink `mqtt` for another broker: the built-in sink uses it for actions with a `server`, after checking their
 * properties.
 *
 * Each action has one connection. It is established when the rule starts, and again after a delay when it is lost;
 * meanwhile outputs fail, or are queued in the cache.
 */
export function mqttSink(): SinkType {
  return {
    name: 'mqtt',
    about: 'Publishes messages at another broker.',
    open: async (setup) => new RemoteSink(setup, new MqttLink(await readLinkSettings(setup), setup.clock))
  };
}

/** @throws InvalidInput PROPERTY_INVALID */
async function readLinkSettings({ properties, dataDir }: SinkSetup): Promise<LinkSettings> {
  const { clientId, insecureSkipVerify } = properties;
  const settings = await readMqttSettings({ properties: { ...properties, clientid: clientId }, dataDir }, 'mqtt sink');
  return {
    dial: { ...settings.dial, verifies: insecureSkipVerify !== true, trustRemedy: TRUST_OR_SKIP_REMEDY },
    client: { ...settings.client, clientId: settings.clientId ?? `embermq_${randomUUID()}`, clean: true }
  };
}

class RemoteSink implements OpenSink {
  readonly #setup: SinkSetup;
  readonly #link: MqttLink;
  readonly #closed = new AbortController();
  #timer: unknown;
  #delayMs = FIRST_DELAY_MS;

  constructor(setup: SinkSetup, link: MqttLink) {
    this.#setup = setup;
    this.#link = link;
    this.#connect();
  }

  async send(item: SinkItem): Promise<void> {
    const { clock, properties } = this.#setup;
    const { qos = 0, retained } = properties as { readonly qos?: QoS; readonly retained?: boolean };
    const topic = String(item.property('topic'));
    const { bytes } = item;
    let link: OpenLink | undefined;
    try {
      await within(clock, async (signal) => {
        link = await this.#link.connected(signal);
        await link.client.publish(topic, bytes, { qos, retain: retained === true });
      });
    } catch (error) {
      const { code, message } = error as BrokerError;
      if (code === 'SEND_TIMEOUT' && link !== undefined) this.#link.drop(link);
      throw isFinalRefusal(error) ? new SendError(`mqtt sink: ${message}`, { isFinal: true, cause: error }) : error;
    }
  }

  close(): Promise<void> {
    this.#closed.abort(new BrokerError('RESOURCE_DOWN', 'the sink is closed'));
    this.#setup.clock.clearTimeout(this.#timer);
    return this.#link.close();
  }

  /** Maintain a connection: report when it is established or lost, and reconnect after a delay. */
  #connect(): void {
    this.#link.connected(this.#closed.signal).then(
      ({ client }) => {
        if (this.#closed.signal.aborted) return;
        const closed = () => this.#lost(new Error('the connection was closed'));
        if (!client.isConnected) return closed();
        this.#delayMs = FIRST_DELAY_MS;
        this.#setup.connected();
        client.on('close', closed);
      },
      (error: unknown) => this.#lost(error)
    );
  }

  #lost(reason: unknown): void {
    const { clock } = this.#setup;
    if (this.#closed.signal.aborted) return;
    this.#setup.disconnected(reason);
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => this.#connect(), this.#delayMs);
    this.#delayMs = Math.min(2 * this.#delayMs, MAX_DELAY_MS);
  }
}

/** @throws BrokerError SEND_TIMEOUT */
async function within(clock: Clock, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const limit = new AbortController();
  const error = new BrokerError('SEND_TIMEOUT', `mqtt sink: not acknowledged within ${SEND_MS} ms`);
  const timer = clock.setTimeout(() => limit.abort(error), SEND_MS);
  const ended = new Promise<never>((_, reject) => limit.signal.addEventListener('abort', () => reject(error)));
  try {
    await Promise.race([run(limit.signal), ended]);
  } finally {
    clock.clearTimeout(timer);
  }
}
