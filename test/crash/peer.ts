import { connect, type Socket } from 'node:net';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { ConnackPacket, Packet, Properties, ProtocolVersion, Will } from '../../lib/packets/types.ts';
import type { Random } from '../fuzz/random.ts';
import type { World } from './world.ts';

/** The client id and the session expiry interval in seconds, 0 for none. */
export interface PeerOptions {
  readonly clientId: string;
  readonly version: ProtocolVersion;
  readonly expirySec: number;
  readonly receiveMaximum?: number;
}

/** A client that keeps its state when the broker or the connection ends, as a device would. */
export abstract class Peer {
  readonly options: PeerOptions;
  protected readonly world: World;
  protected readonly random: Random;
  /** True if it should be connected while the broker runs. */
  wantsOnline = true;
  /** True if the next CONNECT has Clean Start 1. This stays true until a CONNACK confirms one. */
  wantsCleanStart: boolean;
  isOnline = false;
  /** True if a CONNACK has confirmed that the session is persisted. */
  protected isSessionSure = false;
  /**
   * 3.x: a session that began with CleanSession 1 ends with its connection. A session that still exists belongs to a CONNECT whose CONNACK
   * did not arrive.
   */
  #endsWithConnection = false;
  /** Time by which the clock was ahead when the last connection ended. */
  #lastAheadMs = 0;
  /** Time by which the clock was ahead at the last CONNECT, whether it arrived or not. */
  #triedAheadMs = 0;
  #triedBeforeMs = 0;
  #socket: Socket | undefined;
  #onPong: (() => void) | undefined;
  #timers = new Set<NodeJS.Timeout>();

  constructor(world: World, random: Random, options: PeerOptions) {
    this.world = world;
    this.random = random;
    this.options = options;
    this.wantsCleanStart = options.expirySec === 0;
  }

  get name(): string {
    return this.options.clientId;
  }

  /** Called at CONNACK. */
  protected abstract welcomed(sessionPresent: boolean): void;
  protected abstract received(packet: Packet): void;
  /** Called when the connection has ended. */
  protected abstract lost(wasOnline: boolean): void;
  /** Called when the broker has discarded the session with all its state, as it should. */
  protected abstract forgotten(): void;
  /** The will of the next CONNECT. */
  protected will(): Will | undefined {
    return undefined;
  }

  /** Connects if that is wanted and possible. An older connection of the same client id is taken over. */
  connect(): void {
    const { world, options } = this;
    if (world.port === undefined || !this.wantsOnline) return;
    const old = this.#socket;
    if (old !== undefined) this.#gone(old);
    const clean = this.wantsCleanStart;
    if (clean || this.#endsWithConnection) this.forgotten();
    const { clientId, version, expirySec, receiveMaximum } = options;
    const properties: Properties = version === 5 ? { sessionExpiryInterval: expirySec, receiveMaximum } : {};
    const will = this.will();
    const { port } = world;
    this.#triedBeforeMs = this.#triedAheadMs;
    this.#triedAheadMs = world.aheadMs;
    const socket = connect(port, '127.0.0.1');
    this.#socket = socket;
    socket.setNoDelay(true);
    const reader = new PacketReader({ side: 'client', version });
    socket.on('data', (chunk: Buffer) => {
      if (this.#socket !== socket) return;
      try {
        for (const packet of reader.push(chunk)) if (this.#socket === socket) this.#take(packet, clean);
      } catch (error) {
        world.fault(`${this.name}: ${(error as Error).stack}`);
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      if (world.port === port) world.fault(`${this.name}: the broker closed its connection`);
      this.#gone(socket);
      this.later(1, () => this.connect());
    });
    this.send({
      cmd: 'connect',
      protocolVersion: version,
      bridge: false,
      clientId,
      clean: clean || (version < 5 && expirySec === 0),
      keepalive: 0,
      will,
      properties
    });
    old?.destroy();
  }

  #take(packet: Packet, clean: boolean): void {
    this.world.note(this.name, `got ${brief(packet)}`);
    if (packet.cmd === 'connack') this.#welcome(packet, clean);
    else if (packet.cmd === 'pingresp') this.#onPong?.();
    else if (packet.cmd === 'disconnect') this.world.fault(`${this.name} was disconnected: ${JSON.stringify(packet)}`);
    else this.received(packet);
  }

  #welcome({ reasonCode, sessionPresent }: ConnackPacket, clean: boolean): void {
    const { world, options } = this;
    if (reasonCode !== 0) {
      world.fault(`${this.name} was refused with 0x${reasonCode.toString(16)}`);
      return;
    }
    const wasSure = this.isSessionSure && !clean;
    const beforeMs = this.#lastAheadMs;
    const sinceMs = world.aheadMs - beforeMs;
    const isOver = sinceMs >= options.expirySec * 1000;
    const mayBeThere = Math.min(sinceMs, world.aheadMs - this.#triedBeforeMs) < options.expirySec * 1000;
    if (sessionPresent && (clean || !mayBeThere))
      world.fault(`${this.name}: a session that ${clean ? 'was discarded' : 'has expired'} still exists`);
    if (!sessionPresent && wasSure && !isOver) world.fault(`${this.name}: its session is lost`);
    this.#endsWithConnection = clean && options.version < 5;
    this.isSessionSure = options.expirySec > 0 && !this.#endsWithConnection;
    this.wantsCleanStart = options.expirySec === 0;
    this.#lastAheadMs = world.aheadMs;
    this.isOnline = true;
    // the previous session had expired at a CONNECT whose CONNACK did not arrive: this is the session that began then
    const isNew = sessionPresent && this.#triedBeforeMs - beforeMs >= options.expirySec * 1000;
    if ((!sessionPresent || isNew) && !clean) this.forgotten();
    this.welcomed(sessionPresent);
  }

  send(packet: Packet): void {
    this.world.note(this.name, `sends ${brief(packet)}`);
    this.#socket?.write(encode(packet, this.options.version));
  }

  /** Resolves when the broker has answered everything that was sent, or the connection has ended. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onPong = () => {
        this.#onPong = undefined;
        resolve();
      };
      if (!this.isOnline) this.#onPong();
      else this.send({ cmd: 'pingreq' });
    });
  }

  /** Ends the connection: with DISCONNECT, or as if a cable had been cut. */
  leave(isPolite: boolean): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    if (isPolite) this.send({ cmd: 'disconnect', reasonCode: 0 });
    this.#gone(socket);
    if (isPolite) socket.end();
    else socket.destroy();
  }

  comeBack(): void {
    this.wantsOnline = true;
    if (this.#socket === undefined) this.connect();
  }

  #gone(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    const wasOnline = this.isOnline;
    if (wasOnline) this.#lastAheadMs = this.world.aheadMs;
    this.isOnline = false;
    this.#onPong?.();
    this.world.note(this.name, 'is off');
    this.lost(wasOnline);
  }

  /** Calls a function later, unless `rest` is called before. */
  protected later(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }

  /** Clears all timers. */
  rest(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }
}

/** Describes a packet in a few words. */
function brief(packet: Packet): string {
  const { cmd } = packet;
  const id = 'messageId' in packet ? ` ${packet.messageId}` : '';
  switch (cmd) {
    case 'publish': {
      const { topic, payload, qos, dup } = packet;
      return `${cmd}${id} ${topic} ${payload.toString('latin1', 0, 12).split(' ')[0]} QoS ${qos}${dup ? ' DUP' : ''}`;
    }
    case 'connect':
      return `${cmd}${packet.clean ? ' clean' : ''}`;
    case 'connack':
      return `${cmd}${packet.sessionPresent ? ', session present' : ''}`;
    case 'subscribe':
      return `${cmd}${id} ${packet.subscriptions[0].topic}`;
    case 'unsubscribe':
      return `${cmd}${id} ${packet.unsubscriptions[0]}`;
    default:
      return `${cmd}${id}`;
  }
}
