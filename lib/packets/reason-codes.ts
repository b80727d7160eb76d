/** MQTT 5.0 reason codes (section 2.4), by the names of the specification. */
export const ReasonCode = {
  /** 0x00 (0): success; in SUBACK, QoS 0 is granted; in DISCONNECT, a normal disconnection. */
  success: 0x00,
  /** 0x01 (1): QoS 1 is granted (SUBACK). */
  grantedQos1: 0x01,
  /** 0x02 (2): QoS 2 is granted (SUBACK). */
  grantedQos2: 0x02,
  /** 0x04 (4): the client disconnects and wants its will to be published (DISCONNECT). */
  disconnectWithWill: 0x04,
  /** 0x10 (16): the message was accepted, but there are no subscribers (PUBACK, PUBREC). */
  noMatchingSubscribers: 0x10,
  /** 0x11 (17): there was no subscription to remove (UNSUBACK). */
  noSubscriptionExisted: 0x11,
  /** 0x18 (24): the authentication continues with another step (AUTH). */
  continueAuthentication: 0x18,
  /** 0x19 (25): the client begins a re-authentication (AUTH). */
  reAuthenticate: 0x19,
  /** 0x80 (128): an error for which there is no other code, or that is not disclosed. */
  unspecifiedError: 0x80,
  /** 0x81 (129): a packet cannot be decoded. */
  malformedPacket: 0x81,
  /** 0x82 (130): a packet is not allowed here, or contradicts the specification. */
  protocolError: 0x82,
  /** 0x83 (131): a valid packet that the receiver cannot process. */
  implementationSpecificError: 0x83,
  /** 0x84 (132): the version of MQTT is not accepted (CONNACK). */
  unsupportedProtocolVersion: 0x84,
  /** 0x85 (133): the client id is valid UTF-8, but is not accepted (CONNACK). */
  clientIdentifierNotValid: 0x85,
  /** 0x86 (134): the user name or the password is not accepted (CONNACK). */
  badUserNameOrPassword: 0x86,
  /** 0x87 (135): the client has no right to do this. */
  notAuthorized: 0x87,
  /** 0x88 (136): the server cannot serve the client now (CONNACK). */
  serverUnavailable: 0x88,
  /** 0x89 (137): the server is busy; the client may try again later. */
  serverBusy: 0x89,
  /** 0x8a (138): the client is banned (CONNACK). */
  banned: 0x8a,
  /** 0x8b (139): the server shuts down (DISCONNECT). */
  serverShuttingDown: 0x8b,
  /** 0x8c (140): the authentication method is not supported, or is not the one of the CONNECT. */
  badAuthenticationMethod: 0x8c,
  /** 0x8d (141): no packet arrived for 1.5 times the keep alive (DISCONNECT). */
  keepAliveTimeout: 0x8d,
  /** 0x8e (142): another connection uses the client id (DISCONNECT). */
  sessionTakenOver: 0x8e,
  /** 0x8f (143): the topic filter is well-formed, but is not accepted. */
  topicFilterInvalid: 0x8f,
  /** 0x90 (144): the topic name is well-formed, but is not accepted. */
  topicNameInvalid: 0x90,
  /** 0x91 (145): the packet id is already in use. */
  packetIdentifierInUse: 0x91,
  /** 0x92 (146): the packet id is not known (PUBREL, PUBCOMP). */
  packetIdentifierNotFound: 0x92,
  /** 0x93 (147): more messages are unacknowledged than Receive Maximum allows (DISCONNECT). */
  receiveMaximumExceeded: 0x93,
  /** 0x94 (148): the topic alias is 0 or above Topic Alias Maximum (DISCONNECT). */
  topicAliasInvalid: 0x94,
  /** 0x95 (149): the packet is larger than Maximum Packet Size. */
  packetTooLarge: 0x95,
  /** 0x96 (150): the client sends messages too fast (DISCONNECT). */
  messageRateTooHigh: 0x96,
  /** 0x97 (151): a limit that the implementation or an administrator has set is reached. */
  quotaExceeded: 0x97,
  /** 0x98 (152): an administrator has closed the connection (DISCONNECT). */
  administrativeAction: 0x98,
  /** 0x99 (153): the payload is not in the format that its indicator states. */
  payloadFormatInvalid: 0x99,
  /** 0x9a (154): the server does not support retained messages. */
  retainNotSupported: 0x9a,
  /** 0x9b (155): the QoS is above Maximum QoS of the server. */
  qosNotSupported: 0x9b,
  /** 0x9c (156): use another server for the time being (Server Reference). */
  useAnotherServer: 0x9c,
  /** 0x9d (157): use another server from now on (Server Reference). */
  serverMoved: 0x9d,
  /** 0x9e (158): the server does not support shared subscriptions. */
  sharedSubscriptionsNotSupported: 0x9e,
  /** 0x9f (159): connections arrive too fast. */
  connectionRateExceeded: 0x9f,
  /** 0xa0 (160): the time that the connection was authorized for has passed (DISCONNECT). */
  maximumConnectTime: 0xa0,
  /** 0xa1 (161): the server does not support subscription identifiers. */
  subscriptionIdentifiersNotSupported: 0xa1,
  /** 0xa2 (162): the server does not support wildcards in topic filters. */
  wildcardSubscriptionsNotSupported: 0xa2
} as const;

const NAMES = new Map<number, string>(
  Object.entries(ReasonCode).map(([name, code]) => [code, name.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`)])
);

/** The name of a reason code in words, for messages and logs: 0x8d gives `keep alive timeout`. */
export function reasonName(code: number): string {
  return NAMES.get(code) ?? `reason code 0x${code.toString(16)}`;
}
