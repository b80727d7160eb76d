import { ProtocolError } from '../../base/errors.ts';
import type { Connection } from '../../connection/connection.ts';
import type { PacketHandler } from '../../connection/ports.ts';
import {
  checkConnectHeader,
  decodeAuth,
  decodeConnect,
  decodeDisconnect,
  peekConnectVersion,
  UnsupportedVersion
} from '../../packets/decode.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Session } from '../session.ts';

export const onConnect: PacketHandler<Session> = (session, flags, buf, _start, body, end) => {
  const connection = session.connection as Connection<Session>;
  const version = peekConnectVersion(buf, body, end);
  checkConnectHeader(flags, version);
  connection.connectReceived(version);
  try {
    const packet = decodeConnect(buf, body, end);
    connection.packetTaken();
    session.ports.admission.connect(session, packet);
  } catch (error) {
    if (error instanceof UnsupportedVersion) connection.connectReceived(error.answerAs); // [MQTT-3.1.2-2]
    throw error;
  }
};

export const onDisconnect: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  const packet = decodeDisconnect(buf, body, end, session.protocolVersion);
  const { client, lifecycle } = session;
  const expiry = packet.properties?.sessionExpiryInterval;
  if (expiry !== undefined) {
    if (client.sessionExpiry === 0 && expiry !== 0) {
      throw new ProtocolError(
        ReasonCode.protocolError,
        'DISCONNECT: the session expiry interval cannot be changed from 0 to another value'
      ); // [MQTT-3.14.2-2]
    }
    const asked = expiry === 0xffff_ffff ? Infinity : expiry;
    client.expireAfter(Math.min(asked, client.agreement.zone.maxSessionExpiryInterval));
  }
  const { reasonCode } = packet;
  if (reasonCode === ReasonCode.success)
    lifecycle.lost({ reason: 'normal', reasonCode, will: 'drop', isAbrupt: false });
  else lifecycle.lost({ reason: 'disconnect_with_will', reasonCode, will: 'publish', isAbrupt: false });
};

/** Handle a DISCONNECT before CONNACK: the provisional session ends. */
export function onDisconnectWhileConnecting(session: Session): void {
  session.lifecycle.send('closed');
}

export const onAuthWhileConnecting: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  if (session.protocolVersion !== 5)
    throw new ProtocolError(
      ReasonCode.malformedPacket,
      'AUTH is allowed in MQTT 5.0 only; packet type 15 is reserved in earlier versions'
    );
  const packet = decodeAuth(buf, body, end);
  const auth = session.lifecycle.decision?.exchange;
  if (auth === undefined || packet.reasonCode !== ReasonCode.continueAuthentication) {
    throw new ProtocolError(ReasonCode.protocolError, 'AUTH: the broker has sent no authentication challenge'); // [MQTT-4.12.0-7]
  }
  if (packet.properties?.authenticationMethod !== auth.method) {
    throw new ProtocolError(
      ReasonCode.protocolError,
      'AUTH: the authentication method must be the one of the CONNECT packet'
    ); // [MQTT-4.12.0-5]
  }
  session.connection?.packetTaken();
  auth.receive(packet.properties.authenticationData);
};

export const onAuth: PacketHandler<Session> = (session, _flags, buf, _start, body, end) => {
  if (session.protocolVersion !== 5)
    throw new ProtocolError(
      ReasonCode.malformedPacket,
      'AUTH is allowed in MQTT 5.0 only; packet type 15 is reserved in earlier versions'
    );
  const packet = decodeAuth(buf, body, end);
  session.ports.admission.reauthenticate(session, packet);
};
