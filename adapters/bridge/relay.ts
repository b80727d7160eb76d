// A message has the same packet id at both sides, and its acknowledgements are passed on, so the state of a delivery
// is in the two sessions and a failure of either side loses nothing. Everything else here repairs what breaks this
// symmetry: a remote session that was lost, a lower maximum QoS, messages that are not forwarded and are answered
// here. A refusal that may be for now only (0x97) closes both connections, so that the message is sent again. The
// local connection is closed first, so that messages wait in its session. Loops are found by a user property (option
// `hops`).

import { hostname } from 'node:os';
import { type BridgeAccess, encode } from '../../lib/adapter.ts';
import {
  type AckPacket,
  type Broker,
  BrokerError,
  type ByteStream,
  type ConnackPacket,
  type Packet,
  type Properties,
  type ProtocolVersion,
  type PublishPacket,
  ReasonCode,
  reasonName,
  type SessionHandle,
  type SubackPacket
} from '../../lib/index.ts';
import { Leg } from './leg.ts';
import { type BridgeSettings, credentialsOf, localClientId } from './options.ts';
import type { BridgeTopic, TopicMap } from './topics.ts';

/** The user property with the bridges that a message has passed. */
const HOP = 'bridge-hop';
/** The packet id of the SUBSCRIBE. Messages are published to the remote server only after its SUBACK. */
const SUBSCRIBE_ID = 65_535;
/** The packet id of the UNSUBSCRIBE, which precedes the SUBSCRIBE. */
const UNSUBSCRIBE_ID = 65_534;
/** The Session Expiry Interval of a session that does not expire. */
const NEVER = 0xffff_ffff;

/** Counters of a bridge since its creation. */
export interface BridgeCounters {
  /** Messages sent to the remote server. */
  readonly sent: number;
  /** Messages received from the remote server and published here. */
  readonly received: number;
  /** Messages that were not forwarded: too large, without a rule, in a loop, or from the remote server to `$SYS`. */
  readonly dropped: number;
  /** Messages that the other side has rejected with a reason code. */
  readonly refused: number;
  /** Connections that were established. */
  readonly connected: number;
}

/** The context shared by the connections of a bridge. */
export interface RelayContext {
  readonly broker: Broker;
  readonly access: BridgeAccess;
  readonly settings: BridgeSettings;
  readonly out: TopicMap;
  readonly in: TopicMap;
  readonly counters: { -readonly [name in keyof BridgeCounters]: number };
  /** Topic filters that the session at the remote server may still have although no rule uses them. */
  staleFilters: readonly string[];
  /** The id of the bridge in the user property of hops. */
  readonly token: string;
}

/** The sessions that end with their connections. */
export interface EndedSessions {
  readonly local?: boolean;
  /** Possible with MQTT 5.0 only. */
  readonly remote?: boolean;
}

/** Ends a connection with its session, even if its CONNECT has not been processed yet. */
export const END_OF_SESSION: Packet = {
  cmd: 'disconnect',
  reasonCode: ReasonCode.success,
  properties: { sessionExpiryInterval: 0 }
};

/** The bridge of a relay, as far as the relay needs it. */
interface RelayOwner {
  /** Called when the remote server has accepted the client. */
  accepted(): void;
  /** Called when the local session is not the one that the bridge has prepared. */
  sessionLost(): void;
  /**
   * Called when messages are being forwarded.
   * @param sessionPresent true if the remote server has resumed the session
   */
  connected(sessionPresent: boolean): void;
  /** Called once, after both connections are closed. */
  closed(error: Error): void;
}

/**
 * One connection of a bridge: a client of this broker and a client of the remote server, which pass on each other's
 * packets.
 *
 * A message has the same packet id at both sides, and its acknowledgements are passed on as well. The state of its
 * delivery is therefore in the two sessions, and not here: after a failure of either side, the sessions send again what
 * the other side may not have received.
 *
 * Packets for the local session come from the remote server and vice versa; the packet ids of both directions are
 * independent.
 */
export class Relay {
  readonly #context: RelayContext;
  readonly #owner: RelayOwner;
  readonly #remote: Leg;
  #local: Leg | undefined = undefined;
  #connack: ConnackPacket | undefined = undefined;
  /** Packet ids of QoS 2 messages to the remote server that are completed here: their PUBREL is answered locally. */
  readonly #completedHere = new Set<number>();
  /** Packet ids of QoS 2 messages sent with QoS 1, because the remote server does not support QoS 2. */
  readonly #lowered = new Set<number>();
  /** Packet ids for which the bridge itself has sent PUBREL to the local session. */
  readonly #released = new Set<number>();
  /** QoS 2 packet ids sent over this connection, if the remote server has no state of earlier ones. */
  #fresh: Set<number> | undefined = undefined;
  #isConnected = false;
  #isClosed = false;

  constructor(context: RelayContext, stream: ByteStream, isClean: boolean, owner: RelayOwner) {
    this.#context = context;
    this.#owner = owner;
    const { settings, broker } = context;
    const version = settings.version as ProtocolVersion;
    this.#remote = new Leg(stream, version, settings.maxPacketSize, 'the remote server', {
      receive: (packet) => this.#fromRemote(packet),
      processed: () => this.#flush(),
      closed: (error) => this.close(error),
      blocked: (isBlocked) => this.#local?.pause(isBlocked)
    });
    const given = credentialsOf(settings.url);
    const username = settings.username ?? (given?.username || undefined);
    const password = settings.password ?? (given?.password || undefined);
    this.#remote.send({
      cmd: 'connect',
      protocolVersion: version,
      bridge: settings.bridgeBit,
      clientId: settings.clientId ?? `${hostname()}/${broker.settings.node}/${settings.name}`,
      clean: isClean,
      keepalive: settings.keepAlive,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password: Buffer.from(password) }),
      properties: {
        sessionExpiryInterval: settings.clean ? 0 : NEVER,
        receiveMaximum: settings.maxInflight,
        maximumPacketSize: settings.maxPacketSize
      }
    });
    this.#remote.flush();
  }

  /** The current keep alive, in seconds. */
  get keepAlive(): number {
    return this.#connack?.properties?.serverKeepAlive ?? this.#context.settings.keepAlive;
  }

  /**
   * Send a PINGREQ.
   * @returns true if anything was received since the last call
   */
  ping(): boolean {
    const isAlive = this.#remote.heard();
    this.#remote.send({ cmd: 'pingreq' });
    this.#remote.flush();
    return isAlive;
  }

  /**
   * Close both connections.
   * @param error the reason; undefined: the bridge was stopped
   */
  close(error?: Error, ends: EndedSessions = {}): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // the local one first, so that messages are queued in its session
    this.#local?.flush(); // data received before the reason to close, in the same chunk
    this.#local?.close(ends.local ? END_OF_SESSION : undefined);
    const isRefused = this.#connack !== undefined && this.#connack.reasonCode !== 0;
    if (this.#connack === undefined || isRefused) this.#remote.close();
    else this.#remote.close(ends.remote ? END_OF_SESSION : { cmd: 'disconnect', reasonCode: ReasonCode.success });
    this.#owner.closed(error ?? new BrokerError('BRIDGE_STOPPED', 'the bridge was stopped'));
  }

  #flush(): void {
    this.#local?.flush();
    this.#remote.flush();
  }

  // ------------------------------------------------------------------------------------------------------------- connecting

  #accepted(connack: ConnackPacket): void {
    if (this.#connack !== undefined) throw unexpected(connack);
    this.#connack = connack;
    const { reasonCode, sessionPresent } = connack;
    if (reasonCode !== 0)
      throw new BrokerError('BRIDGE_REFUSED', `the remote server has refused the bridge: ${reasonName(reasonCode)}`);
    if (!sessionPresent) this.#fresh = new Set();
    this.#owner.accepted();
    this.#remote.hold();
    this.#openLocal(connack.properties ?? {});
  }

  #openLocal({ receiveMaximum = 65_535, maximumPacketSize }: Properties): void {
    const { settings, access } = this.#context;
    this.#local = openLocal(
      access,
      settings,
      { receiveMaximum: Math.min(receiveMaximum, settings.maxInflight), maximumPacketSize },
      {
        receive: (packet) => this.#fromLocal(packet),
        processed: () => this.#flush(),
        closed: (error) => this.close(error),
        blocked: (isBlocked) => this.#remote.pause(isBlocked)
      }
    );
  }

  /**
   * Called when the local session is connected: remove state that the remote session does not have, and subscribe
   * there.
   */
  #localAccepted(connack: ConnackPacket): void {
    const local = this.#local as Leg;
    if (connack.reasonCode !== 0)
      throw new BrokerError('BRIDGE_REFUSED', `this broker has refused the bridge: ${reasonName(connack.reasonCode)}`);
    const session = this.#context.broker.sessions.get(localClientId(this.#context.settings.name));
    subscribeLocal(session, this.#context.out.rules, this.#connack?.properties?.maximumQoS);
    if (!connack.sessionPresent) {
      this.#owner.sessionLost();
      throw new BrokerError('BRIDGE_SESSION', 'the session of the bridge at this broker was deleted');
    }
    if (this.#connack?.sessionPresent !== true) {
      // the remote server now uses these packet ids for other messages, which would count as duplicates
      for (const id of session.flights().awaitingRel) {
        this.#released.add(id);
        local.send({ cmd: 'pubrel', messageId: id, reasonCode: 0 });
      }
    }
    this.#unsubscribe();
    const { rules } = this.#context.in;
    if (rules.length === 0) this.#begin();
    else {
      local.hold();
      this.#remote.send({
        cmd: 'subscribe',
        messageId: SUBSCRIBE_ID,
        subscriptions: rules.map(({ subscription, qos }) => ({
          topic: subscription,
          qos,
          noLocal: !subscription.startsWith('$share/'), // [MQTT-3.8.3-4]
          retainAsPublished: true,
          retainHandling: 1
        }))
      });
    }
    this.#remote.release();
    this.#flush();
  }

  #unsubscribe(): void {
    const { staleFilters } = this.#context;
    if (staleFilters.length === 0) return;
    this.#remote.send({ cmd: 'unsubscribe', messageId: UNSUBSCRIBE_ID, unsubscriptions: [...staleFilters] });
  }

  #subscribed({ messageId, granted }: SubackPacket): void {
    if (messageId !== SUBSCRIBE_ID || this.#isConnected || granted.length !== this.#context.in.rules.length)
      throw new BrokerError(
        'BRIDGE_PROTOCOL',
        'the remote server has sent a SUBACK that does not belong to a SUBSCRIBE'
      );
    const at = granted.findIndex((code) => code >= 0x80);
    if (at >= 0) {
      const { subscription } = this.#context.in.rules[at];
      throw new BrokerError(
        'BRIDGE_REFUSED',
        `the remote server has refused the topic filter "${subscription}": ${reasonName(granted[at])}`
      );
    }
    this.#begin();
  }

  #begin(): void {
    this.#isConnected = true;
    this.#owner.connected(this.#connack?.sessionPresent === true);
    this.#local?.release();
  }

  // ------------------------------------------------------------------------------------------------------------- forwarding

  #fromLocal(packet: Packet): void {
    switch (packet.cmd) {
      case 'publish':
        this.#forwardOut(packet);
        break;
      case 'pubrel':
        this.#releaseOut(packet);
        break;
      case 'puback':
      case 'pubrec':
        this.#checkRefusal(packet);
        this.#pass(this.#remote, packet);
        break;
      case 'pubcomp':
        if (!this.#released.delete(packet.messageId)) this.#pass(this.#remote, packet);
        break;
      case 'connack':
        this.#localAccepted(packet);
        break;
      case 'disconnect':
        throw new BrokerError('BRIDGE_CLOSED', `this broker has closed the bridge: ${reasonName(packet.reasonCode)}`);
    }
  }

  #fromRemote(packet: Packet): void {
    if (packet.cmd === 'connack') {
      this.#accepted(packet);
      return;
    }
    const local = this.#local;
    if (local === undefined) throw unexpected(packet);
    switch (packet.cmd) {
      case 'publish':
        this.#forwardIn(local, packet);
        break;
      case 'puback':
      case 'pubrec':
        this.#checkRefusal(packet);
        this.#acknowledgeOut(local, packet);
        break;
      case 'pubrel':
      case 'pubcomp':
        this.#pass(local, packet);
        break;
      case 'suback':
        this.#subscribed(packet);
        break;
      case 'unsuback':
        this.#context.staleFilters = [];
        break;
      case 'pingresp':
        break;
      case 'disconnect':
        throw new BrokerError(
          'BRIDGE_CLOSED',
          `the remote server has closed the connection: ${reasonName(packet.reasonCode)}`
        );
      default:
        throw unexpected(packet);
    }
  }

  /** Pass on an acknowledgement, without its properties, which concern only the connection it comes from. */
  #pass(to: Leg, { cmd, messageId, reasonCode }: AckPacket): void {
    to.send({ cmd, messageId, reasonCode });
  }

  /**
   * A message was rejected. If the reason may be temporary, close the connections, so that the message is sent again
   * later.
   */
  #checkRefusal({ cmd, reasonCode }: AckPacket): void {
    if (reasonCode < 0x80) return;
    if (reasonCode === ReasonCode.quotaExceeded)
      throw new BrokerError('BRIDGE_QUOTA', `a message was refused for now (${cmd.toUpperCase()} 0x97)`);
    this.#context.counters.refused++;
  }

  /** The highest QoS that the remote server accepts. */
  get #maximumQoS(): number {
    return this.#connack?.properties?.maximumQoS ?? 2;
  }

  #forwardOut(packet: PublishPacket): void {
    const { qos, messageId = 0 } = packet;
    const bytes = this.#outgoing(packet);
    if (bytes === undefined) {
      this.#context.counters.dropped++;
      if (qos > 0) this.#answerOut(qos, messageId);
      return;
    }
    this.#context.counters.sent++;
    this.#remote.sendBytes(bytes);
    if (qos === 2) this.#fresh?.add(messageId);
    if (qos === 2 && this.#maximumQoS === 1) this.#lowered.add(messageId);
    if (qos > 0 && this.#maximumQoS === 0) this.#answerOut(qos, messageId);
  }

  /** Acknowledge a message of the local session locally. */
  #answerOut(qos: number, messageId: number): void {
    if (qos === 2) this.#completedHere.add(messageId);
    this.#local?.send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode: 0 });
  }

  /** The PUBLISH for the remote server; undefined if the message is not forwarded. */
  #outgoing(packet: PublishPacket): Buffer | undefined {
    const { retainAvailable, maximumPacketSize = Infinity } = this.#connack?.properties ?? {};
    const mapped = this.#context.out.map(packet.topic);
    if (mapped === undefined) return undefined;
    const properties = this.#properties(packet.properties);
    if (properties === 'loop') return undefined;
    const { rule, topic } = mapped;
    const bytes = encoded(
      {
        cmd: 'publish',
        topic,
        payload: packet.payload,
        qos: Math.min(packet.qos, this.#maximumQoS) as PublishPacket['qos'],
        dup: packet.dup && this.#fresh === undefined && this.#maximumQoS > 0,
        retain: packet.retain && rule.retain && retainAvailable !== 0,
        messageId: packet.messageId,
        properties
      },
      this.#remote.version
    );
    return bytes !== undefined && bytes.length <= maximumPacketSize ? bytes : undefined;
  }

  /** Handle a PUBACK or PUBREC of the remote server. */
  #acknowledgeOut(local: Leg, packet: AckPacket): void {
    if (packet.cmd === 'puback' && this.#lowered.delete(packet.messageId)) this.#answerOut(2, packet.messageId);
    else this.#pass(local, packet);
  }

  /** Handle a PUBREL of the local session. */
  #releaseOut(packet: AckPacket): void {
    const { messageId } = packet;
    const isCompletedHere = this.#completedHere.delete(messageId) || this.#maximumQoS < 2;
    // the state of the message belonged to a remote session that no longer exists
    const isUnknown = this.#fresh?.delete(messageId) === false;
    if (isCompletedHere || isUnknown) this.#local?.send({ cmd: 'pubcomp', messageId, reasonCode: 0 });
    else this.#pass(this.#remote, packet);
  }

  #forwardIn(local: Leg, packet: PublishPacket): void {
    const { qos, messageId = 0 } = packet;
    const bytes = this.#incoming(packet);
    if (bytes === undefined) {
      this.#context.counters.dropped++;
      if (this.#remote.isIgnored)
        throw new BrokerError('BRIDGE_PROTOCOL', 'the remote server sends messages, but reads no acknowledgements');
      // the PUBREL of QoS 2 is passed on; the local session does not know the packet id and answers with PUBCOMP
      if (qos > 0) this.#remote.send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode: 0 });
      return;
    }
    this.#context.counters.received++;
    local.sendBytes(bytes);
  }

  /** The PUBLISH for the local session; undefined if the message is not forwarded. */
  #incoming(packet: PublishPacket): Buffer | undefined {
    if (packet.properties?.topicAlias !== undefined)
      throw new BrokerError('BRIDGE_PROTOCOL', 'the remote server has used a topic alias, although none is allowed');
    const mapped = this.#context.in.map(packet.topic);
    // other servers must not publish to $SYS of this broker
    if (mapped === undefined || /^\$SYS(\/|$)/.test(mapped.topic)) return undefined;
    const properties = this.#properties(packet.properties);
    if (properties === 'loop') return undefined;
    const { rule, topic } = mapped;
    return encoded({ ...packet, topic, retain: packet.retain && rule.retain, properties }, 5);
  }

  /**
   * The properties of a message that are passed on.
   * @returns `loop` if the message has already passed this bridge
   */
  #properties(given: Properties | undefined): Properties | undefined | 'loop' {
    const { settings, token } = this.#context;
    const userProperties = given?.userProperties ?? [];
    for (const [name, value] of userProperties) if (name === HOP && value === token) return 'loop';
    if (!settings.hops) {
      if (given?.subscriptionIdentifier === undefined) return given;
      return { ...given, subscriptionIdentifier: undefined };
    }
    const hops = [...userProperties, [HOP, token] as const];
    return { ...given, subscriptionIdentifier: undefined, userProperties: hops };
  }
}

/** Connect to the local session of a bridge. */
export function openLocal(
  access: BridgeAccess,
  settings: BridgeSettings,
  properties: Properties,
  owner: ConstructorParameters<typeof Leg>[4],
  isClean = false
): Leg {
  const { maxQueue, maxQueueBytes, maxInflight, queueQos0, name } = settings;
  const limits = {
    maxMqueueLen: maxQueue,
    maxMqueueBytes: maxQueueBytes,
    maxInflight,
    mqueueStoreQos0: queueQos0
  };
  const leg = new Leg(access.open(limits), 5, 268_435_460, 'this broker', owner);
  leg.send({
    cmd: 'connect',
    protocolVersion: 5,
    bridge: false,
    clientId: localClientId(name),
    clean: isClean,
    keepalive: 0,
    properties: { sessionExpiryInterval: NEVER, ...properties }
  });
  leg.flush();
  return leg;
}

/**
 * Give the local session the subscriptions of these rules, and remove all others.
 * @param maximumQoS the highest QoS that the remote server accepts
 */
export function subscribeLocal(session: SessionHandle, rules: readonly BridgeTopic[], maximumQoS = 2): void {
  const wanted = new Map(rules.map((rule) => [rule.subscription, rule]));
  for (const { filter } of [...session.subscriptions()]) if (!wanted.has(filter)) session.unsubscribe(filter);
  for (const { subscription, qos } of wanted.values())
    session.subscribe(subscription, {
      qos: Math.min(qos, maximumQoS) as BridgeTopic['qos'],
      noLocal: !subscription.startsWith('$share/'),
      retainAsPublished: true,
      retainHandling: 1
    });
}

/**
 * Encode a PUBLISH.
 * @returns undefined if it is too long
 */
function encoded(packet: PublishPacket, version: ProtocolVersion): Buffer | undefined {
  try {
    return encode(packet, version);
  } catch {
    return undefined; // VALUE_TOO_LONG, because of a prefix
  }
}

function unexpected({ cmd }: Packet): BrokerError {
  return new BrokerError('BRIDGE_PROTOCOL', `the remote server has sent an unexpected ${cmd.toUpperCase()}`);
}
