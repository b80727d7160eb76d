/** MQTT for streams: messages of another server as rows. */
export { mqttSource } from './source.ts';
