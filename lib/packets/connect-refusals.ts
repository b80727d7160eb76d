import { ReasonCode } from './reason-codes.ts';

/** A row of `CONNECT_REFUSALS`. */
export interface ConnectRefusalEntry {
  /** The reason for the refusal, for people. */
  readonly about: string;
  /** Reason code of the CONNACK of MQTT 5.0. */
  readonly reasonCode: number;
  /** Return code of the CONNACK of MQTT 3.1 and 3.1.1; undefined: the connection is closed without a CONNACK [MQTT-3.2.2-6 of 3.1.1]. */
  readonly returnCode?: 1 | 2 | 3 | 4 | 5;
  /** True if a limit is reached. */
  readonly isLimit?: true;
  /** True if the identity of the client is not accepted: counted as `packets.connack.auth_error` in addition to `packets.connack.error`. */
  readonly isAuthError?: true;
}

/** The reasons for refusing a CONNECT: all reason codes of CONNACK above 0x80 [MQTT-3.2.2-8], by their documented names. */
export const CONNECT_REFUSALS = {
  unspecified_error: refusal({ reasonCode: ReasonCode.unspecifiedError, about: 'No other reason code fits.' }),
  malformed_packet: refusal({ reasonCode: ReasonCode.malformedPacket, about: 'The CONNECT cannot be decoded.' }),
  protocol_error: refusal({ reasonCode: ReasonCode.protocolError, about: 'The CONNECT violates the specification.' }),
  implementation_specific_error: refusal({
    reasonCode: ReasonCode.implementationSpecificError,
    about: 'The broker or a hook failed.'
  }),
  unsupported_protocol_version: refusal({
    reasonCode: ReasonCode.unsupportedProtocolVersion,
    returnCode: 1,
    about: 'The protocol version is not accepted (option `protocolVersions`).'
  }),
  client_identifier_not_valid: refusal({
    reasonCode: ReasonCode.clientIdentifierNotValid,
    returnCode: 2,
    about: 'The client id is empty, too long, or not allowed in a mount point.'
  }),
  bad_username_or_password: refusal({
    reasonCode: ReasonCode.badUserNameOrPassword,
    returnCode: 4,
    isAuthError: true,
    about: 'The user name or the password is wrong.'
  }),
  not_authorized: refusal({
    reasonCode: ReasonCode.notAuthorized,
    returnCode: 5,
    isAuthError: true,
    about: 'The client may not connect.'
  }),
  server_unavailable: refusal({
    reasonCode: ReasonCode.serverUnavailable,
    returnCode: 3,
    about: 'The broker stops, the session cannot be persisted, or what decides about its subscriptions has failed.'
  }),
  server_busy: refusal({
    reasonCode: ReasonCode.serverBusy,
    returnCode: 3,
    isLimit: true,
    about: 'The broker is short of memory.'
  }),
  banned: refusal({ reasonCode: ReasonCode.banned, returnCode: 5, isAuthError: true, about: 'The client is banned.' }),
  bad_authentication_method: refusal({
    reasonCode: ReasonCode.badAuthenticationMethod,
    returnCode: 5,
    isAuthError: true,
    about: 'The authentication method is not supported.'
  }),
  topic_name_invalid: refusal({ reasonCode: ReasonCode.topicNameInvalid, about: 'The will topic is not accepted.' }),
  packet_too_large: refusal({
    reasonCode: ReasonCode.packetTooLarge,
    about: 'The CONNECT is larger than `maxConnectSize`, or its answer too large.'
  }),
  quota_exceeded: refusal({
    reasonCode: ReasonCode.quotaExceeded,
    returnCode: 3,
    isLimit: true,
    about: 'A limit of sessions or of space is reached.'
  }),
  payload_format_invalid: refusal({
    reasonCode: ReasonCode.payloadFormatInvalid,
    about: 'The will payload is declared as UTF-8 but is not.'
  }),
  retain_not_supported: refusal({
    reasonCode: ReasonCode.retainNotSupported,
    about: 'Retained wills are not supported.'
  }),
  qos_not_supported: refusal({
    reasonCode: ReasonCode.qosNotSupported,
    about: 'The QoS of the will is not supported.'
  }),
  use_another_server: refusal({
    reasonCode: ReasonCode.useAnotherServer,
    returnCode: 3,
    about: 'A hook names another server for the time being.'
  }),
  server_moved: refusal({ reasonCode: ReasonCode.serverMoved, returnCode: 3, about: 'A hook names another server.' }),
  connection_rate_exceeded: refusal({
    reasonCode: ReasonCode.connectionRateExceeded,
    returnCode: 3,
    isLimit: true,
    about: 'Connections arrive too fast.'
  })
} as const;

/** The rows by reason code. */
export const REFUSALS_BY_CODE: ReadonlyMap<number, ConnectRefusalEntry> = new Map(
  Object.values<ConnectRefusalEntry>(CONNECT_REFUSALS).map((row) => [row.reasonCode, row])
);

/** A row of `CONNECT_REFUSALS`. Its type has the texts of the columns. */
function refusal(row: ConnectRefusalEntry): ConnectRefusalEntry {
  return row;
}
