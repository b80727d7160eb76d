import type { Message } from '../../packets/message.ts';
import { RulePublisher } from '../../packets/named-publisher.ts';
import type { QoS } from '../../packets/types.ts';
import type { ClientInfo } from '../../records/client.ts';
import type { ValueObject } from '../../sql/values.ts';
import { CLIENT, hostOf, orAbsent } from './client-columns.ts';
import type { Column } from './column.ts';
import { messageId } from './message-id.ts';
import { propertiesColumn } from './properties.ts';

/** The value of an event about a message. */
interface OfMessage {
  readonly message: Message;
}

/** The value of an event about a message for one receiver. */
interface OfDelivery extends OfMessage {
  readonly client: ClientInfo;
  /** QoS and RETAIN of the packet to the receiver, if there is one. */
  readonly qos?: QoS;
  readonly retain?: boolean;
}

/** Columns of the message of an event. */
export const MESSAGE = {
  id: ({ message }) => messageId(message),
  payload: ({ message }, event) => event.payloadOf(message),
  topic: ({ message }) => message.topic,
  qos: ({ message }) => message.qos,
  flags: ({ message }) => ({ dup: isDup(message), retain: message.retain }),
  headers: ({ message }) => headersOf(message),
  pub_props: ({ message }) => propertiesColumn(message.properties),
  publish_received_at: ({ message }) => message.timestamp
} as const satisfies Readonly<Record<string, Column<OfMessage>>>;

/** The publisher of a message, in the columns of the client. */
export const PUBLISHER = {
  clientid: ({ message }) => orAbsent(message.clientId),
  username: ({ message }) => message.username,
  peerhost: ({ message }) => hostOf(message.origin as Partial<ClientInfo> | undefined)
} as const satisfies Readonly<Record<string, Column<OfMessage>>>;

/** The receiver of a message, its publisher, and the packet sent to the receiver. */
export const DELIVERY = {
  clientid: CLIENT.clientid,
  username: CLIENT.username,
  from_clientid: PUBLISHER.clientid,
  from_username: PUBLISHER.username,
  peerhost: CLIENT.peerhost,
  qos: ({ message, qos = message.qos }) => qos,
  flags: ({ message, retain = message.retain }) => ({ dup: false, retain })
} as const satisfies Readonly<Record<string, Column<OfDelivery>>>;

/** Check whether the publisher has sent the message again. */
function isDup(message: Message): boolean {
  const { buf, start } = message.frame();
  return (buf[start] & 8) !== 0;
}

function headersOf(message: Message): ValueObject {
  const { username } = message;
  const peerhost = hostOf(message.origin as Partial<ClientInfo> | undefined);
  return {
    ...(username === undefined ? {} : { username }),
    ...(peerhost === undefined ? {} : { peerhost }),
    protocol: 'mqtt',
    ...(message.origin instanceof RulePublisher && { republish_by: message.origin.clientId }),
    properties: propertiesColumn(message.properties)
  };
}
