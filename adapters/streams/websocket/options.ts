import { type FieldTable, type FieldValues, field } from '../../../lib/adapter.ts';
import type { Duration, Size } from '../../../lib/index.ts';
import { checkOrigins, LOOPBACK_ORIGINS, type OriginCheck } from '../../upgrades/index.ts';
import { TLS_FILE_PROPERTIES } from '../tls-files.ts';

/** Limits of WebSockets of streams. */
export interface WebSocketLimits {
  /** Maximum size of a received message; a larger one closes its connection with code 1009. Default 1 MB. */
  readonly maxPayload?: Size;
  /** Maximum number of client connections to all paths; further ones are refused with 503. Default 1024. */
  readonly maxConnections?: number;
  /**
   * Maximum number of queued bytes for a peer that does not read. A client of a path that exceeds it is disconnected,
   * which is logged; outputs for a server fail meanwhile. Default 1 MB.
   */
  readonly maxBuffered?: Size;
  /** Interval of pings; a connection is closed if nothing was received since the last one. Default 30s; 0: no pings. */
  readonly pingInterval?: Duration;
  /** Time limit for connecting to a server, including its answer to the handshake. Default 10s. */
  readonly handshakeTimeout?: Duration;
  /**
   * Web pages that may connect to paths, in addition to those of loopback origins, like the option `origins` of `ws` in
   * `embermq/net`. Clients other than browsers send no origin, and may connect. A function decides about all clients.
   */
  readonly origins?: string | readonly string[] | OriginCheck;
}

export const LIMIT_OPTIONS = {
  maxPayload: field('size', 1_048_576, 'Maximum size of a received message.', { unit: 'bytes', min: 1 }),
  maxConnections: field('integer', 1024, 'Maximum number of client connections.', { min: 1 }),
  maxBuffered: field('size', 1_048_576, 'Maximum number of queued bytes for a peer.', { unit: 'bytes', min: 1 }),
  pingInterval: field('duration', 30_000, 'Interval of pings; 0: never.', { unit: 'ms' }),
  handshakeTimeout: field('duration', 10_000, 'Time limit for connecting.', { unit: 'ms', min: 1 }),
  origins: field('object', LOOPBACK_ORIGINS, 'Origins that may connect in addition to loopback origins.', {
    check: checkOrigins
  })
};

/** The limits, with defaults filled in. */
export type Limits = FieldValues<typeof LIMIT_OPTIONS>;

/** Properties of the source and the sink. */
export const WEBSOCKET_PROPERTIES: FieldTable = {
  addr: {
    type: 'string',
    about:
      'Server to connect to: ws://host:port, wss://host:port, or host:port. Default: clients connect to a path here.'
  },
  path: { type: 'string', about: 'Path of the URL, such as /measurements.' },
  headers: { type: 'object', default: {}, about: 'Additional headers of the handshake with a server.' },
  token: {
    type: 'string',
    about:
      'Clients of a path need the header `Authorization: Bearer` with this text, a long random one; a server gets this header. Default: none.',
    isSecret: true
  },
  ...TLS_FILE_PROPERTIES,
  insecureSkipVerify: {
    type: 'boolean',
    about: 'Only false: the certificate of the server is always verified.',
    choices: [false]
  }
};

/** Time for a peer to answer a close frame, in milliseconds. */
export const CLOSE_MS = 1_000;
