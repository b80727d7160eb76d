import type { ProtocolVersion, UserProperty } from '../packets/types.ts';

/** Address, transport and other facts of a connection, as a listener passes them to `broker.handle`. Only `transport` is required. */
export interface TransportInfo {
  /** The transport. `stream`: a Duplex of the application; `local`: a client inside this process. */
  readonly transport: 'tcp' | 'tls' | 'ws' | 'wss' | 'unix' | 'stream' | 'local';
  /** Name of the listener, for example `tcp:1883`. */
  readonly listener?: string | undefined;
  /** Name of the zone whose settings apply; default `external`. */
  readonly zone?: string | undefined;
  /** Prefix of all topic names and filters of the connection; default: that of the zone. */
  readonly mountpoint?: string | undefined;
  /** Protocol versions that the listener accepts; default: those of the zone. */
  readonly protocolVersions?: readonly ProtocolVersion[] | undefined;
  /** IP address of the client; behind a proxy the one in the PROXY header, or for WebSocket in the header `proxyHeader`. */
  readonly remoteAddress?: string | undefined;
  /** Port of the client; behind a proxy the one in the PROXY header; undefined if the address is from an HTTP header. */
  readonly remotePort?: number | undefined;
  /** IP address to which the client connected; behind a proxy the one in the PROXY header. */
  readonly localAddress?: string | undefined;
  /** Port to which the client connected; behind a proxy the one in the PROXY header. */
  readonly localPort?: number | undefined;
  /** User name from a client certificate or a pre-shared key identity; replaces the user name in CONNECT. */
  readonly username?: string | undefined;
  /** True if the handshake has authenticated the client (pre-shared key): the authenticate hooks are not called. */
  readonly authenticated?: boolean | undefined;
  /** The client certificate; undefined if there is none or it was not verified. */
  readonly certificate?:
    | {
        /** The common name (CN) of its subject. */
        readonly commonName?: string;
        /** The whole subject. */
        readonly subject?: string;
        /** The SHA-256 fingerprint: pairs of hexadecimal digits, separated by colons. */
        readonly fingerprint256?: string;
      }
    | undefined;
  /** Headers of the WebSocket upgrade request. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
}

/**
 * A client with a connection or a session, as hooks and events receive it. `Data` is the type of the data that the app
 * stores with its clients.
 */
export interface ClientInfo<Data = unknown> {
  /** The client id; an empty one in CONNECT is replaced by one that the broker assigns. */
  readonly clientId: string;
  /** The user name, or the one by which a hook or the transport has replaced it; undefined if there is none. */
  readonly username: string | undefined;
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. */
  readonly protocolVersion: ProtocolVersion;
  /** The current keep alive in seconds; 0: off. Before CONNACK, the requested one. */
  readonly keepalive: number;
  /** True if the last CONNECT requested a new session (Clean Start, Clean Session). */
  readonly cleanStart: boolean;
  /** Seconds for which the session outlives its connection; `Infinity`: it does not expire. */
  readonly sessionExpiry: number;
  /** Name of the zone whose settings apply. */
  readonly zone: string;
  /** Prefix of all topics of the client, which it does not see; empty if there is none. */
  readonly mountpoint: string;
  /** True if the client declared itself a bridge in CONNECT. */
  readonly isBridge: boolean;
  /** True if an authenticate hook exempted the client from access control. */
  readonly isSuperuser: boolean;
  /**
   * The data that the authenticate hook or the source has stored with the client (`Approval.clientData`). It is not
   * persisted, so a session from the store has none until its client returns.
   */
  readonly data: Data | undefined;
  /** Address, transport and handshake facts of the current connection, or of the last one. */
  readonly transportInfo: TransportInfo;
  /** User properties of CONNECT, in order. */
  readonly userProperties: readonly UserProperty[];
  /** Time of the CONNACK, in milliseconds since 1970; undefined while not connected. */
  readonly connectedAt: number | undefined;
  /** Time of the last disconnect, in milliseconds since 1970; undefined while connected. */
  readonly disconnectedAt: number | undefined;
}

/** Copy the fields of a client into a plain object, for logs. */
export function clientFacts(client: ClientInfo): ClientInfo {
  return {
    clientId: client.clientId,
    username: client.username,
    protocolVersion: client.protocolVersion,
    keepalive: client.keepalive,
    cleanStart: client.cleanStart,
    sessionExpiry: client.sessionExpiry,
    zone: client.zone,
    mountpoint: client.mountpoint,
    isBridge: client.isBridge,
    isSuperuser: client.isSuperuser,
    data: client.data,
    transportInfo: client.transportInfo,
    userProperties: client.userProperties,
    connectedAt: client.connectedAt,
    disconnectedAt: client.disconnectedAt
  };
}
