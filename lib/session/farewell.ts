import type { DisconnectReason } from '../events/reasons.ts';
import { isAllowedCode } from '../packets/allowed-codes.ts';
import { encodeConnack, encodeDisconnect } from '../packets/encode.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { Properties, ProtocolVersion } from '../packets/types.ts';

/** What the last packet of a connection says beside its reason code; for MQTT 5.0 clients. */
export interface Farewell {
  readonly reasonString?: string | undefined;
  readonly serverReference?: string | undefined;
}

/** Reason codes by which a client learns that its credentials are not accepted. */
export const AUTH_CODES: ReadonlySet<number> = new Set([
  ReasonCode.badUserNameOrPassword,
  ReasonCode.notAuthorized,
  ReasonCode.badAuthenticationMethod,
  ReasonCode.banned
]);

/** Encode a CONNACK that refuses a client. Its properties are omitted if they do not fit. @returns undefined if it does not fit at all */
export function refusal(
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
export function disconnection(reasonCode: number, farewell: Farewell, maxFrame: number): Buffer {
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
export function connackCode(code: number): number {
  if (code === ReasonCode.serverShuttingDown) return ReasonCode.serverUnavailable;
  return code >= 0x80 && isAllowedCode('connack', code) ? code : ReasonCode.unspecifiedError;
}

/** Map a reason code to one that DISCONNECT of a server has [MQTT-3.14.2-1]. */
export function disconnectCode(code: number): number {
  if (isAllowedCode('disconnectFromServer', code)) return code;
  return AUTH_CODES.has(code) ? ReasonCode.notAuthorized : ReasonCode.unspecifiedError;
}

/** The reason of a disconnect that a protocol error has caused. */
export function reasonOf(reasonCode: number): DisconnectReason {
  switch (reasonCode) {
    case ReasonCode.packetTooLarge:
      return 'packet_too_large';
    case ReasonCode.notAuthorized:
    case ReasonCode.badUserNameOrPassword:
      return 'not_authorized';
    case ReasonCode.keepAliveTimeout:
      return 'keepalive_timeout';
    default:
      return 'protocol_error';
  }
}
