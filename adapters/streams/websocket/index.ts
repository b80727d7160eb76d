/** WebSockets for stream rules: as clients of other servers, and on paths of an HTTP server. */
export type { OriginCheck } from '../../upgrades/index.ts';
export { StreamsPort, type StreamsPortOptions } from '../port.ts';
export type { WebSocketLimits } from './options.ts';
export {
  type MountedWebSockets,
  mountedWebSockets,
  type WebSocketsOptions,
  type WebSocketTypes,
  webSockets
} from './types.ts';
