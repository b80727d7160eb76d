/** Listeners: TCP, TLS, WebSocket and Unix sockets for an embedded broker. */
export type { Acceptor, RefusalReason } from './gate.ts';
export { type Listening, type ListenOptions, listen } from './listen.ts';
export type { Listener } from './net-listener.ts';
export type { ListenerOptions, TcpOptions, UnixOptions } from './options.ts';
export { type Transport, tcp, unix } from './transport.ts';
