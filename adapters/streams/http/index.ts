/** HTTP sources and sinks of stream rules. */
export type { Answer, Body, BodyLimits, Call, HttpMounts, Service } from '../../rest/index.ts';
export { StreamsPort, type StreamsPortOptions } from '../port.ts';
export { httpPullSource } from './pull-source.ts';
export {
  type HttpPushOptions,
  httpPushSource,
  type MountedHttpPush,
  mountedHttpPush,
  type PushChecks
} from './push-source.ts';
export { restSink } from './sink.ts';
