import type { ByteStream } from '../../base/byte-stream.ts';
import type { WorkCount } from '../../base/pending-work.ts';
import { localPair } from '../../client/local-stream.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Events } from '../../events/events.ts';
import type { Alarms } from '../../monitor/alarms.ts';
import type { Zone } from '../../records/zone.ts';
import type { Inflow } from '../configuration/connectors.ts';
import { Stops } from '../features/stops.ts';

/** Prefix of the client ids of bridges. Other clients are refused with such a client id. */
export const BRIDGE_PREFIX = '$bridge/';

/** The limits of the local session of a bridge. */
export type BridgeLimits = Pick<Zone, 'maxMqueueLen' | 'maxMqueueBytes' | 'maxInflight' | 'mqueueStoreQos0'>;

/** The zones of bridges. Only `BridgeAccess` creates them, so that no listener can give its clients their rights. */
const BRIDGE_ZONES = new WeakSet<Zone>();
const ZONE_NAME = 'bridge';

/**
 * Tell whether the connections of a zone are those of bridges, which need no authentication and may publish and subscribe to everything.
 */
export function isBridgeZone(zone: Zone): boolean {
  return BRIDGE_ZONES.has(zone);
}

/**
 * The zone of the session of a bridge that is read from the store.
 * @param zone its limits apply if the bridge is not expected
 * @param isExpected the bridge exists or will be created, and then its limits apply
 */
export function restoredBridgeZone(zone: Zone, isExpected: boolean): Zone {
  return { ...zone, ...OPEN, ...(isExpected && { maxMqueueLen: 0, maxMqueueBytes: 0, mqueueStoreQos0: true }) };
}

/** The id of the alarm that messages wait for a bridge that does not exist. */
export function missingBridgeAlarm(name: string): string {
  return `bridge_missing:${name}`;
}

/** The part of the services that `BridgeAccess` uses. */
interface BridgeServices {
  readonly work: WorkCount;
  readonly events: Events;
  readonly alarms: Alarms;
}

/** The part of the broker that a bridge uses in addition to the public members. For `embermq/bridge`. */
export class BridgeAccess {
  readonly #services: BridgeServices;
  readonly #zones: { zone(): Zone };
  readonly #serve: (stream: ByteStream, zone: Zone) => void;

  /** @internal */
  constructor(services: BridgeServices, zones: { zone(): Zone }, serve: (stream: ByteStream, zone: Zone) => void) {
    this.#services = services;
    this.#zones = zones;
    this.#serve = serve;
  }

  /**
   * Connect a client of this broker over a stream of MQTT packets. It is trusted, and has these limits instead of those of a zone.
   * @throws StateError BROKER_NOT_STARTED
   */
  open(limits: BridgeLimits): ByteStream {
    const [ours, theirs] = localPair(this.#services.work);
    const zone: Zone = { ...this.#zones.zone(), ...OPEN, ...limits };
    BRIDGE_ZONES.add(zone);
    this.#serve(ours, zone);
    return theirs;
  }

  /** Note that the bridge exists. */
  made(name: string): void {
    this.#services.alarms.clear(missingBridgeAlarm(name));
  }

  /** The times without a connection to the remote server, for the question why a message did not arrive. @param now the wall-clock time in milliseconds */
  outages(now: () => number): Inflow['outages'] & {
    /** The connection was lost. */
    begin(): void;
    /** The connection is there again. */
    end(): void;
  } {
    return new Stops(now);
  }

  /** Emit an event of a bridge. */
  announce<E extends 'bridge.connected' | 'bridge.disconnected'>(name: E, event: BrokerEvents[E]): void {
    const { events } = this.#services;
    if (events.heard[name]) events.emit(name, event);
  }
}

/**
 * The settings in which a bridge differs from clients: packets that the remote server accepts must not fail here because of a setting for
 * devices.
 */
const OPEN = {
  name: ZONE_NAME,
  connectTimeout: 60_000,
  idleTimeout: 60_000,
  serverKeepalive: 0,
  maxKeepalive: 0,
  maxPacketSize: 268_435_460,
  maxConnectSize: 268_435_460,
  maxClientidLen: 65_535,
  publishLimit: undefined,
  rateLimit: undefined,
  totalPublishLimit: undefined,
  totalRateLimit: undefined,
  protocolVersions: [5],
  useUsernameAsClientid: false,
  allowAnonymous: true,
  bypassAuthPlugins: true,
  enableBan: false,
  limitFailedLogins: false,
  enableFlappingDetect: false,
  aclNomatch: 'allow',
  mountpoint: undefined,
  maxQosAllowed: 2,
  retainAvailable: true,
  wildcardSubscription: true,
  sharedSubscription: true,
  controlCharacters: 'allow',
  maxTopicLevels: 0,
  maxOutboundTopicAlias: 0,
  payloadFormatCheck: false,
  maxSubscriptions: 0,
  maxInflightBytes: 0,
  receiveMaximum: 65_535,
  maxAwaitingRel: 0,
  awaitRelTimeout: 0,
  maxSessionExpiryInterval: Infinity,
  mqueuePriorities: undefined,
  upgradeQos: false,
  ignoreLoopDeliver: false
} as const satisfies Partial<Zone>;
