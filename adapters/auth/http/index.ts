/** Authentication and access control by requests to an HTTP server. */
export type { OutgoingTls, Pem } from '../outgoing/tls.ts';
export { http } from './http-source.ts';
export type { BreakerOptions, HttpOptions } from './options.ts';
export type { HttpRequest, JsonValue } from './request-template.ts';
