/// <reference types="node" preserve="true" />
/** Listeners: TCP, TLS, WebSocket and Unix sockets for an embedded broker, and HTTP for its interfaces. */
export type { OriginCheck } from '../upgrades/index.ts';
export type { Acceptor, Disconnected, ZoneSizes } from './acceptor.ts';
export { type AttachOptions, attachWebSocket, UpgradeListener, type UpgradeOptions, upgradeHandler } from './attach.ts';
export { isLoopback } from './exposure.ts';
export type { RefusalReason } from './gate.ts';
export { type HttpHandlers, listenHttp } from './http-listener.ts';
export { type AppListener, type Listening, type ListenOptions, listen } from './listen.ts';
export type { Listener } from './net-listener.ts';
export type { ListenerOptions, TcpOptions, UnixOptions } from './options.ts';
export { type PresharedKey, type PresharedKeys, parsePskFile } from './psk.ts';
export type { Pem, ServerCertificate, TlsMaterial, TlsSettings } from './tls-options.ts';
export {
  type TlsOptions,
  type Transport,
  tcp,
  tls,
  unix,
  type WsOptions,
  type WssOptions,
  ws,
  wss
} from './transport.ts';
export type { WebSocketSettings } from './websocket.ts';
