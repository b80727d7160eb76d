import { ProtocolError } from '../../base/errors.ts';
import type { HandlerTable, PacketHandler } from '../../connection/ports.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { SessionHandlers } from '../ports.ts';
import type { Session } from '../session.ts';
import { onPuback, onPubcomp, onPubrec, onPubrel } from './acknowledgements.ts';
import { onAuth, onAuthWhileConnecting, onConnect, onDisconnect, onDisconnectWhileConnecting } from './connect.ts';
import { onPublish } from './publish.ts';
import { onPingreq, onSubscribe, onUnsubscribe } from './subscribe.ts';

type Handler = PacketHandler<Session>;

const NAMES = [
  'packet type 0',
  'CONNECT',
  'CONNACK',
  'PUBLISH',
  'PUBACK',
  'PUBREC',
  'PUBREL',
  'PUBCOMP',
  'SUBSCRIBE',
  'SUBACK',
  'UNSUBSCRIBE',
  'UNSUBACK',
  'PINGREQ',
  'PINGRESP',
  'DISCONNECT',
  'AUTH'
];

function handlerTable(handlers: Readonly<Record<number, Handler>>, when: string): HandlerTable<Session> {
  return NAMES.map(
    (name, type): Handler =>
      handlers[type] ??
      (() => {
        throw new ProtocolError(ReasonCode.protocolError, `${name} is not allowed ${when}`);
      })
  );
}

/** Only CONNECT is allowed [MQTT-3.1.0-1]. */
const BEFORE_CONNECT = handlerTable({ 1: onConnect }, 'before CONNECT');

/** Between CONNECT and CONNACK only the packets of an authentication exchange are allowed [MQTT-3.1.2-30]. */
const AUTHENTICATING = handlerTable(
  { 14: onDisconnectWhileConnecting, 15: onAuthWhileConnecting },
  'while authenticating'
);

const LIVE = handlerTable(
  {
    3: onPublish,
    4: onPuback,
    5: onPubrec,
    6: onPubrel,
    7: onPubcomp,
    8: onSubscribe,
    10: onUnsubscribe,
    12: onPingreq,
    14: onDisconnect,
    15: onAuth
  },
  'from a connected client' // nor is a second CONNECT [MQTT-3.1.0-2]
);

/** The handler tables by state. During a re-authentication other packets are handled with the previous permissions [MQTT-4.12.1-2]. */
export const HANDLERS: SessionHandlers<Session> = {
  beforeConnect: BEFORE_CONNECT,
  authenticating: AUTHENTICATING,
  live: LIVE
};
