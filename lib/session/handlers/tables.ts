import { ProtocolError } from '../../base/errors.ts';
import { Metric } from '../../events/metrics.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Session } from '../session.ts';
import { onPuback, onPubcomp, onPubrec, onPubrel } from './acknowledgements.ts';
import { onAuth, onAuthWhileConnecting, onConnect, onDisconnect, onDisconnectWhileConnecting } from './lifecycle.ts';
import { onPublish } from './publish.ts';
import { onPingreq, onSubscribe, onUnsubscribe } from './subscribe.ts';

/** Reads one packet: it lies in `buf[start, end)`, its body begins at `body`. */
export type Handler = (session: Session, flags: number, buf: Buffer, start: number, body: number, end: number) => void;

/** Handlers by packet type. What may not come now is in no table, so it needs no check. */
export type HandlerTable = readonly Handler[];

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

/** Counter of each packet type received. Types that only a server sends count as received, no more. */
export const RECEIVED: readonly number[] = [
  Metric.packetsReceived,
  Metric.packetsConnectReceived,
  Metric.packetsReceived,
  Metric.packetsPublishReceived,
  Metric.packetsPubackReceived,
  Metric.packetsPubrecReceived,
  Metric.packetsPubrelReceived,
  Metric.packetsPubcompReceived,
  Metric.packetsSubscribeReceived,
  Metric.packetsReceived,
  Metric.packetsUnsubscribeReceived,
  Metric.packetsReceived,
  Metric.packetsPingreqReceived,
  Metric.packetsReceived,
  Metric.packetsDisconnectReceived,
  Metric.packetsAuthReceived
];

function table(handlers: Readonly<Record<number, Handler>>, when: string): HandlerTable {
  return NAMES.map(
    (name, type): Handler =>
      handlers[type] ??
      (() => {
        throw new ProtocolError(ReasonCode.protocolError, `${name} is not allowed ${when}`);
      })
  );
}

/** Nothing but CONNECT [MQTT-3.1.0-1]. */
export const BEFORE_CONNECT = table({ 1: onConnect }, 'before CONNECT');

/** Between CONNECT and CONNACK of a client that takes part in an exchange [MQTT-3.1.2-30]. */
export const AUTHENTICATING = table(
  { 14: onDisconnectWhileConnecting, 15: onAuthWhileConnecting },
  'while authenticating'
);

export const LIVE = table(
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
  'from a client, or not now' // a second CONNECT, too [MQTT-3.1.0-2]
);

/** Other traffic goes on under the old rights until the exchange ends [MQTT-4.12.1-2]. */
export const REAUTHENTICATING = LIVE;
