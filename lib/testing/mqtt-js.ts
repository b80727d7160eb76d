import type { VirtualClock } from './clock.ts';

/** The stores of a client of MQTT.js. */
export interface MqttJsStores<S = unknown> {
  /** QoS 2 messages that are received in part. */
  readonly incomingStore: S;
  /** QoS 1 and 2 messages that are not acknowledged, or queued while offline. */
  readonly outgoingStore: S;
}

/** The members of a client of MQTT.js that `kit.reconnect` uses. */
export interface MqttJsClient<S = unknown> extends MqttJsStores<S> {
  /** True between CONNACK and the end of the connection. */
  readonly connected: boolean;
  /** True after `end()`. */
  readonly disconnected?: boolean;
  /** Connects again; without stores, with new ones. */
  reconnect(stores?: MqttJsStores<S>): unknown;
  /** Adds a listener. */
  on(event: 'connect' | 'close' | 'error', listener: (value?: never) => void): unknown;
  /** Removes a listener. */
  removeListener(event: 'connect' | 'close' | 'error', listener: (value?: never) => void): unknown;
}

/** See `TestBroker.reconnect`. */
export async function reconnect<S>(client: MqttJsClient<S>, clock: VirtualClock): Promise<void> {
  await clock.settle(); // the client notices that its connection has ended
  if (client.connected) return;
  const { incomingStore, outgoingStore } = client;
  await new Promise<void>((resolve, reject) => {
    const listeners = {
      connect: () => settle(resolve),
      error: (error?: unknown) => settle(() => reject(error)),
      close: () => settle(() => reject(new Error('the connection was closed before the client was connected')))
    };
    const settle = (then: () => void): void => {
      for (const [event, listener] of Object.entries(listeners)) client.removeListener(event as 'close', listener);
      then();
    };
    for (const [event, listener] of Object.entries(listeners)) client.on(event as 'close', listener);
    // Called without stores, MQTT.js replaces them. After `end()` they are closed.
    if (client.disconnected === true) client.reconnect();
    else client.reconnect({ incomingStore, outgoingStore });
  });
  await clock.settle(); // what was queued at QoS 0 is sent after `connect`
}
