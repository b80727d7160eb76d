import { INSPECT } from '../base/symbols.ts';
import type { Publisher } from '../packets/message.ts';
import type { ProtocolVersion, UserProperty } from '../packets/types.ts';
import type { ClientRules } from '../records/access-rule.ts';
import { type ClientInfo, clientFacts, type TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import { type Agreement, noAgreement, storedAgreement } from './life/agreement.ts';
import type { SessionEntry } from './messages/session-record.ts';

/**
 * The client of a session, as hooks and events receive it and as its messages name their publisher.
 *
 * The object stays the same while the session exists; a returning client changes its properties.
 */
export class SessionClient implements ClientInfo, Publisher {
  /** The result of the last CONNECT. */
  agreement: Agreement;
  clientId = '';
  username: string | undefined = undefined;
  mountpoint = '';
  /** Seconds; 0 if there is no keep alive. */
  keepalive = 0;
  /** Seconds; `Infinity` if the session never expires. */
  sessionExpiry = 0;
  isSuperuser = false;
  /** Access rules that the authentication has given to the client. */
  rules: ClientRules | undefined = undefined;
  data: unknown = undefined;
  transportInfo: TransportInfo;
  /** Wall-clock milliseconds. */
  connectedAt: number | undefined = undefined;
  /** Wall-clock milliseconds. */
  disconnectedAt: number | undefined = undefined;
  #identity: Publisher | undefined = undefined;

  constructor(zone: Zone, transportInfo: TransportInfo) {
    this.agreement = noAgreement(zone);
    this.transportInfo = transportInfo;
  }

  /** The client of a session from the store. @param disconnectedAt wall-clock milliseconds */
  static restored(zone: Zone, record: SessionEntry, disconnectedAt: number): SessionClient {
    const { transport, listener, remoteAddress, protocolVersion, cleanStart, isBridge, userProperties } = record;
    const client = new SessionClient(zone, {
      transport,
      ...(listener === '' ? {} : { listener }),
      ...(remoteAddress === '' ? {} : { remoteAddress })
    });
    client.agreement = storedAgreement(zone, protocolVersion, cleanStart, isBridge, userProperties);
    client.clientId = record.clientId;
    client.username = record.username;
    client.mountpoint = record.mountpoint;
    client.isSuperuser = record.isSuperuser;
    client.keepalive = record.keepalive;
    client.sessionExpiry = record.sessionExpiry;
    client.disconnectedAt = disconnectedAt;
    return client;
  }

  get protocolVersion(): ProtocolVersion {
    return this.agreement.protocolVersion;
  }

  get cleanStart(): boolean {
    return this.agreement.cleanStart;
  }

  get isBridge(): boolean {
    return this.agreement.isBridge;
  }

  get userProperties(): readonly UserProperty[] {
    return this.agreement.userProperties;
  }

  get zone(): string {
    return this.agreement.zone.name;
  }

  /** True if the session outlives its connection. */
  get isPersistent(): boolean {
    return this.sessionExpiry > 0;
  }

  /** See `Publisher`. */
  get identity(): Publisher {
    const { clientId, username } = this;
    if (this.#identity?.clientId !== clientId || this.#identity.username !== username)
      this.#identity = { clientId, username };
    return this.#identity;
  }

  /** The properties for `JSON.stringify` (and below for `console.log`). */
  toJSON(): ClientInfo {
    return clientFacts(this);
  }

  [INSPECT](): ClientInfo {
    return clientFacts(this);
  }

  /**
   * Set the identity of the client: by its CONNECT, and again if the hooks give it another user name.
   * @param mountpoint prefix of all topics of the client, which the caller adds when the client id has been checked
   */
  identified(agreement: Agreement, clientId: string, username: string | undefined, mountpoint = ''): void {
    this.agreement = agreement;
    this.clientId = clientId;
    this.username = username;
    this.mountpoint = mountpoint;
  }

  /** Set the rights of the client according to its authentication. @param isSuperuser access control does not apply to it */
  entitled(isSuperuser: boolean, rules: ClientRules | undefined, data: unknown): void {
    this.isSuperuser = isSuperuser;
    this.rules = rules;
    this.data = data;
  }

  /** Let the session expire this number of seconds after the connection has closed. @param keepalive in seconds */
  expireAfter(seconds: number, keepalive = this.keepalive): void {
    this.sessionExpiry = seconds;
    this.keepalive = keepalive;
  }

  /** Note the time from which the connection belongs to the session, or at which it closed. @param wallMs wall-clock milliseconds */
  noteConnected(isConnected: boolean, wallMs: number): void {
    this.connectedAt = isConnected ? wallMs : undefined;
    this.disconnectedAt = isConnected ? undefined : wallMs;
  }

  /** Adopt the new connection of a client that has returned, and the result of its CONNECT. */
  returned(other: SessionClient): void {
    this.transportInfo = other.transportInfo;
    this.agreement = other.agreement;
    this.username = other.username;
    this.mountpoint = other.mountpoint;
    this.keepalive = other.keepalive;
    this.sessionExpiry = other.sessionExpiry;
    this.isSuperuser = other.isSuperuser;
    this.rules = other.rules;
    this.data = other.data;
  }
}
