import type { ConnectPacket, ProtocolVersion, UserProperty } from '../../packets/types.ts';
import type { Zone } from '../../records/zone.ts';

/** Size of the largest packet of MQTT in bytes: the limit for clients that declare no Maximum Packet Size. */
const LARGEST_PACKET = 268_435_460;

/** The user properties of clients that have none; shared to save memory. */
export const NO_USER_PROPERTIES: readonly UserProperty[] = [];

/** The declarations of a CONNECT packet, within the limits of the zone. The value is immutable, and clients of one kind share it. */
export interface Agreement {
  readonly zone: Zone;
  /** Packet layout of the client: 5 for MQTT 5.0, otherwise 4. */
  readonly layout: 4 | 5;
  readonly protocolVersion: ProtocolVersion;
  readonly cleanStart: boolean;
  /** True if the client declared itself a bridge. */
  readonly isBridge: boolean;
  /** Authentication Method; undefined if there is none. */
  readonly authMethod: string | undefined;
  /** Size of the largest packet that the client accepts, in bytes. */
  readonly maxFrame: number;
  /**
   * Maximum number of packet ids in flight to the client: its Receive Maximum, or `maxInflight` if that is smaller. 0 for a stored session.
   */
  readonly window: number;
  /** Highest topic alias that is used towards the client; 0: none. */
  readonly topicAliases: number;
  readonly userProperties: readonly UserProperty[];
  /** True if the client accepts reason strings in acknowledgements (Request Problem Information). */
  readonly wantsReasons: boolean;
}

/** The agreements before CONNECT. */
const BEFORE_CONNECT = new WeakMap<Zone, Agreement>();

/** The agreement with the previous client, which the next one often shares. */
let latest: Agreement | undefined;

/** The agreement before CONNECT. */
export function noAgreement(zone: Zone): Agreement {
  let agreement = BEFORE_CONNECT.get(zone);
  if (agreement === undefined) BEFORE_CONNECT.set(zone, (agreement = withoutConnection(zone, 4, true, false)));
  return agreement;
}

/** The agreement that follows from a CONNECT packet. */
export function agreementOf(packet: ConnectPacket, zone: Zone): Agreement {
  const { properties = {} } = packet;
  const receiveMaximum = properties.receiveMaximum ?? 65_535;
  return shared({
    zone,
    layout: packet.protocolVersion === 5 ? 5 : 4,
    protocolVersion: packet.protocolVersion,
    cleanStart: packet.clean,
    isBridge: packet.bridge,
    authMethod: properties.authenticationMethod,
    maxFrame: properties.maximumPacketSize ?? LARGEST_PACKET,
    window: zone.maxInflight === 0 ? receiveMaximum : Math.min(receiveMaximum, zone.maxInflight),
    topicAliases: Math.min(properties.topicAliasMaximum ?? 0, zone.maxOutboundTopicAlias),
    userProperties: properties.userProperties ?? NO_USER_PROPERTIES,
    wantsReasons: properties.requestProblemInformation !== 0
  });
}

/** The agreement of a session in the store. The part that concerns its connection is agreed when the client returns. */
export function storedAgreement(
  zone: Zone,
  protocolVersion: ProtocolVersion,
  cleanStart: boolean,
  isBridge: boolean,
  userProperties: readonly UserProperty[]
): Agreement {
  return shared(withoutConnection(zone, protocolVersion, cleanStart, isBridge, userProperties));
}

function withoutConnection(
  zone: Zone,
  protocolVersion: ProtocolVersion,
  cleanStart: boolean,
  isBridge: boolean,
  userProperties = NO_USER_PROPERTIES
): Agreement {
  return {
    zone,
    layout: protocolVersion === 5 ? 5 : 4,
    protocolVersion,
    cleanStart,
    isBridge,
    authMethod: undefined,
    maxFrame: LARGEST_PACKET,
    window: 0,
    topicAliases: 0,
    userProperties,
    wantsReasons: true
  };
}

/** The given agreement, or the latest one if that is equal: most clients of a broker are of one kind, and memory counts. */
function shared(agreement: Agreement): Agreement {
  if (latest === undefined || !isSame(agreement, latest)) latest = agreement;
  return latest;
}

function isSame(one: Agreement, other: Agreement): boolean {
  for (const name in one) if (one[name as keyof Agreement] !== other[name as keyof Agreement]) return false;
  return true;
}
