/** Bridges: messages forwarded between a broker and another MQTT server. */
export { type Bridge, bridge, bridges } from './bridge.ts';
export { mqttBridge, rpcBridge } from './mqtt-resource.ts';
export { BRIDGE_OPTIONS, type BridgeOptions } from './options.ts';
export type {
  BridgeCounters,
  /** @deprecated Use `BridgeCounters`. */
  BridgeCounters as BridgeFigures
} from './relay.ts';
export type { BridgeTopic, BridgeTopics } from './topics.ts';
