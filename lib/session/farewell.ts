import { isAllowedCode } from '../packets/allowed-codes.ts';
import { REFUSALS_BY_CODE } from '../packets/connect-refusals.ts';
import { encodeConnack, encodeDisconnect } from '../packets/encode.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { Properties, ProtocolVersion } from '../packets/types.ts';

/** What the last packet of a connection says beside its reason code; for MQTT 5.0 clients. */
export interface Farewell {
  readonly reasonString?: string | undefined;
  readonly serverReference?: string | undefined;
}

/** Whether a reason code says that the credentials of a client are not accepted. */
export function isAuthError(reasonCode: number): boolean {
  return REFUSALS_BY_CODE.get(reasonCode)?.isAuthError === true;
}

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
  return isAuthError(code) ? ReasonCode.notAuthorized : ReasonCode.unspecifiedError;
}
