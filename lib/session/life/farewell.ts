import type { Events } from '../../events/events.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import { DISCONNECT_REASONS, type DisconnectReason } from '../../events/reasons.ts';
import { isAllowedCode } from '../../packets/allowed-codes.ts';
import { REFUSALS_BY_CODE } from '../../packets/connect-refusals.ts';
import { encodeConnack, encodeDisconnect } from '../../packets/encode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Properties, ProtocolVersion } from '../../packets/types.ts';
import { shownUsername } from '../../records/shown-username.ts';
import type { ConnectCode, SessionPorts } from '../ports.ts';
import type { SessionClient } from '../session-client.ts';

/** The contents of the last packet of a connection besides its reason code; for MQTT 5.0 clients. */
export interface Farewell {
  readonly reasonString?: string | undefined;
  readonly serverReference?: string | undefined;
  /** The reason, for the operator; it is not sent. */
  readonly why?: string | undefined;
}

/** The writer of a connection. */
interface LastWriter {
  send(packet: Buffer, metric: number): void;
}

/** Send the DISCONNECT of a connection that the broker ends, if the protocol version has one. */
export function sendDisconnect(
  writer: LastWriter,
  client: SessionClient,
  reasonCode: number,
  farewell: Farewell
): void {
  const { agreement, protocolVersion } = client;
  if (protocolVersion === 5)
    writer.send(disconnection(reasonCode, farewell, agreement.maxFrame), Metric.packetsDisconnectSent);
}

/**
 * Refuse a client with a CONNACK. If CONNACK does not have the reason code, a Reason String describes the reason, unless one is given. MQTT
 * 3.x has no code for these reasons either: the connection is closed without a CONNACK [MQTT-3.2.2-6 of 3.1.1].
 */
export function refuse(
  connection: { readonly writer: LastWriter; takeAnswerVersion(): ProtocolVersion | undefined },
  client: SessionClient,
  { metrics, events }: { readonly metrics: Metrics; readonly events: Events },
  reason: DisconnectReason,
  reasonCode: number,
  given: Farewell
): void {
  const { counts } = metrics;
  const version = connection.takeAnswerVersion();
  if (version === undefined) return; // the CONNECT was not readable, or a CONNACK has been sent [MQTT-3.2.0-2]
  const code = connackCode(reasonCode);
  const reasonString = given.reasonString ?? (code === reasonCode ? undefined : DISCONNECT_REASONS[reason].about);
  const farewell = { ...given, reasonString };
  counts[Metric.packetsConnackError]++;
  if (isAuthError(reasonCode)) counts[Metric.packetsConnackAuthError]++;
  counts[Metric.clientConnack]++;
  const packet = refusal(code, version, farewell, client.agreement.maxFrame);
  if (packet !== undefined) connection.writer.send(packet, Metric.packetsConnackSent);
  if (events.heard['client.connack'])
    events.emit('client.connack', { client, reasonCode: code, why: farewell.why ?? farewell.reasonString });
}

/** The code of the record of a CONNECT that is refused with this reason code. */
export function refusalOf(reasonCode: number): ConnectCode {
  if (reasonCode === ReasonCode.banned) return 'banned';
  if (reasonCode === ReasonCode.badUserNameOrPassword) return 'wrong_password';
  return REFUSALS_BY_CODE.get(reasonCode)?.isLimit === true ? 'connection_limit' : 'connect_refused';
}

/** Record a refused CONNECT by client id and address. */
export function recordRefusal(
  client: SessionClient,
  { reasons }: Pick<SessionPorts<never>, 'reasons'>,
  code: ConnectCode,
  why: string
): void {
  const { clientId, transportInfo } = client;
  const detail = `${why} (${originOf(client)})`;
  if (clientId !== '') reasons.add(code, { clientId, address: transportInfo.remoteAddress, detail });
  else reasons.add(code, { clientId: undefined, address: transportInfo.remoteAddress ?? 'unknown', detail });
}

/** The address and the user name of a client in a phrase: `from 192.0.2.7, user "u"`. */
export function originOf({ username, transportInfo }: SessionClient): string {
  const shown = shownUsername(username);
  const user = shown === undefined ? 'without a user name' : `user ${JSON.stringify(shown)}`;
  return `from ${transportInfo.remoteAddress ?? `a connection of the kind ${transportInfo.transport}`}, ${user}`;
}

/** Tell whether a reason code means that the credentials of a client are not accepted. */
function isAuthError(reasonCode: number): boolean {
  return REFUSALS_BY_CODE.get(reasonCode)?.isAuthError === true;
}

/** Encode a CONNACK that refuses a client. Its properties are omitted if they do not fit. @returns undefined if it does not fit at all */
function refusal(
  reasonCode: number,
  version: ProtocolVersion,
  farewell: Farewell,
  maxFrame: number
): Buffer | undefined {
  const connack = { cmd: 'connack', sessionPresent: false, reasonCode } as const;
  const whole = encodeConnack({ ...connack, properties: propertiesOf(farewell) }, version);
  if (whole.length <= maxFrame) return whole;
  const bare = encodeConnack(connack, version); // [MQTT-3.2.2-19]
  return bare.length <= maxFrame ? bare : undefined;
}

/** Encode a DISCONNECT. Its properties are omitted if they do not fit [MQTT-3.14.2-3]. */
function disconnection(reasonCode: number, farewell: Farewell, maxFrame: number): Buffer {
  const disconnect = { cmd: 'disconnect', reasonCode } as const;
  const packet = encodeDisconnect({ ...disconnect, properties: propertiesOf(farewell) });
  return packet.length <= maxFrame ? packet : encodeDisconnect(disconnect);
}

function propertiesOf({ reasonString, serverReference }: Farewell): Properties {
  const properties: Properties = {};
  if (reasonString !== undefined) properties.reasonString = reasonString;
  if (serverReference !== undefined) properties.serverReference = serverReference;
  return properties;
}

/** Map a reason code to one that CONNACK has [MQTT-3.2.2-8]. */
function connackCode(code: number): number {
  if (code === ReasonCode.serverShuttingDown) return ReasonCode.serverUnavailable;
  return code >= 0x80 && isAllowedCode('connack', code) ? code : ReasonCode.unspecifiedError;
}

/** Map a reason code to one that DISCONNECT of a server has [MQTT-3.14.2-1]. */
export function disconnectCode(code: number): number {
  if (isAllowedCode('disconnectFromServer', code) && code !== ReasonCode.badAuthenticationMethod) return code;
  return isAuthError(code) ? ReasonCode.notAuthorized : ReasonCode.unspecifiedError;
}
