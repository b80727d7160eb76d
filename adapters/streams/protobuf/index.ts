/** The format `protobuf` of stream rules. It needs the package `protobufjs`. */
export { type ProtobufOptions, protobufFormat } from './format.ts';
