/** Kafka for stream rules: records of a topic as rows, and outputs as records. Needs the package kafkajs, or a client of the app. */
export type {
  KafkaClient,
  KafkaConfig,
  KafkaConsumer,
  KafkaLogin,
  KafkaOptions,
  KafkaProducer,
  KafkaRecord
} from './client.ts';
export { kafkaSink } from './sink.ts';
export { kafkaSource } from './source.ts';
