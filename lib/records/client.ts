import type { ProtocolVersion, UserProperty } from '../packets/types.ts';

/** What a listener knows of a connection when it hands it to `broker.handle`. All fields but `transport` are optional. */
export interface TransportInfo {
  /** How the bytes travel; `stream` for any Duplex of the app's own, `local` for a client inside this process. */
  readonly transport: 'tcp' | 'tls' | 'ws' | 'wss' | 'unix' | 'stream' | 'local';
  /** Name of the listener, for example `tcp:1883`. */
  readonly listener?: string | undefined;
  /** Zone whose settings apply; `external` by default. */
  readonly zone?: string | undefined;
  /** Prefix of all topics of this connection, over the zone's. */
  readonly mountpoint?: string | undefined;
  /** Protocol versions this listener accepts, over the zone's. */
  readonly protocolVersions?: readonly ProtocolVersion[] | undefined;
  /** The client's address and port, and those it came to; behind a proxy what the PROXY header told. */
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  /** User name that takes the place of CONNECT's: from a client certificate or a pre-shared key identity. */
  readonly username?: string | undefined;
  /** The peer has proved who it is in the handshake (pre-shared key): the authenticate hooks are passed over. */
  readonly authenticated?: boolean | undefined;
  /** Subject of the verified client certificate. */
  readonly certificate?:
    | { readonly commonName?: string; readonly subject?: string; readonly fingerprint256?: string }
    | undefined;
  /** Headers of the WebSocket upgrade request. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined;
}

/** Who a connected or remembered client is: what hooks and events are given. */
export interface ClientInfo {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly protocolVersion: ProtocolVersion;
  /** Seconds, as agreed; 0: off. */
  readonly keepalive: number;
  readonly cleanStart: boolean;
  /** Seconds the session outlives its connection; `Infinity`: for ever. */
  readonly sessionExpiry: number;
  readonly zone: string;
  readonly mountpoint: string;
  /** The bridge bit was set. */
  readonly isBridge: boolean;
  /** Told by an authenticate hook: access rules do not bind this client. */
  readonly isSuperuser: boolean;
  /** Address, transport and handshake facts of the present or last connection. */
  readonly transportInfo: TransportInfo;
  /** User properties of CONNECT, in order. */
  readonly userProperties: readonly UserProperty[];
  /** Wall-clock milliseconds; undefined before CONNACK. */
  readonly connectedAt: number | undefined;
  /** Wall-clock milliseconds of the last disconnect; undefined while connected. */
  readonly disconnectedAt: number | undefined;
}

/** The facts of a client without the object that has them: what logs show. */
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
    transportInfo: client.transportInfo,
    userProperties: client.userProperties,
    connectedAt: client.connectedAt,
    disconnectedAt: client.disconnectedAt
  };
}
