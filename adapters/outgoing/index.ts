/** Requests to other HTTP and MQTT servers: persistent connections, TLS, public addresses. For adapters. */
export { refusalOf } from './answer-status.ts';
export { withDeadline } from './deadline.ts';
export { type HttpAnswer, type HttpCall, HttpClient, isPlainText } from './http-client.ts';
export { type DialSettings, dial } from './mqtt-dial.ts';
export { closeClient, type LinkSettings, MqttLink, type OpenLink } from './mqtt-link.ts';
export { isFinalRefusal } from './mqtt-refusal.ts';
export { clientOptionsOf, readMqttUrl, type ServerOptions } from './mqtt-server.ts';
export { checkTls, OUTGOING_TLS_OPTIONS, type OutgoingTls, type Pem, tlsOf } from './tls.ts';
export { readTlsParams, TLS_PARAMS } from './tls-params.ts';
export { UNTRUSTED_CERTIFICATE, withTrustHint } from './trust-hint.ts';
export { checkUrl } from './url.ts';
