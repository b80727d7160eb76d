/** Authentication and access control by requests to an HTTP server. */

export type { OutgoingTls, Pem } from '../../outgoing/index.ts';
export type { BreakerOptions, LimitOptions } from '../outgoing/limits.ts';
export { http } from './http-source.ts';
export type { HttpOptions } from './options.ts';
export type { HttpRequest, JsonValue } from './request-template.ts';
