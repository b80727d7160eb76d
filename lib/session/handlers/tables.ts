// Packets never pass through a state machine. One event of an xstate machine costs 2 to 5 us, the whole path of a
// packet 0.5. Entering a state selects a table of packet handlers; the table has an entry for each type, and
// that of a packet that is illegal in this state throws a protocol error.

import { ProtocolError } from '../../base/errors.ts';
import type { HandlerTable, PacketHandler } from '../../connection/ports.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import { PacketType } from '../../packets/types.ts';
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
const BEFORE_CONNECT = handlerTable({ [PacketType.connect]: onConnect }, 'before CONNECT');

/** Between CONNECT and CONNACK only the packets of an authentication exchange are allowed [MQTT-3.1.2-30]. */
const AUTHENTICATING = handlerTable(
  { [PacketType.disconnect]: onDisconnectWhileConnecting, [PacketType.auth]: onAuthWhileConnecting },
  'while authenticating'
);

const LIVE = handlerTable(
  {
    [PacketType.publish]: onPublish,
    [PacketType.puback]: onPuback,
    [PacketType.pubrec]: onPubrec,
    [PacketType.pubrel]: onPubrel,
    [PacketType.pubcomp]: onPubcomp,
    [PacketType.subscribe]: onSubscribe,
    [PacketType.unsubscribe]: onUnsubscribe,
    [PacketType.pingreq]: onPingreq,
    [PacketType.disconnect]: onDisconnect,
    [PacketType.auth]: onAuth
  },
  'from a connected client' // nor is a second CONNECT [MQTT-3.1.0-2]
);

/** The handler tables by state. During a re-authentication other packets are handled with the previous permissions [MQTT-4.12.1-2]. */
export const HANDLERS: SessionHandlers<Session> = {
  beforeConnect: BEFORE_CONNECT,
  authenticating: AUTHENTICATING,
  live: LIVE
};
