/** MQTT for stream rules: messages of another server as rows, and outputs as messages to another server. */
export { mqttSink } from './sink.ts';
export { mqttSource } from './source.ts';
