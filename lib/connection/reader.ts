// Handlers get a chunk and offsets, not a packet object, and must not keep the chunk beyond the turn: what has to
// live longer is copied. A handler can close the connection, pause it, or make the peer of a local stream answer at
// once, so the loop checks after each packet, and bytes that arrive while it runs wait in `#arrivedChunks`.
//
// Every pause stops the stream, but only those in `UNREAD` stop the parsing of bytes that have arrived; pauses for
// hooks may overlap and are counted, others are not. While reading is paused the keep alive does not run. In a run of
// frames on the fast path, each frame is checked for its form and the bytes of its topic, and the route is looked up
// once.

import { ProtocolError } from '../base/errors.ts';
import { BaseTimer } from '../base/timing-wheel.ts';
import { Metric } from '../events/metrics.ts';
import { checkFlags, peekConnectVersion } from '../packets/decode.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { PacketType } from '../packets/types.ts';
import { varintLength } from '../packets/varint.ts';
import type { Route } from '../routing/route.ts';
import { isSameTopic } from '../topics/topic.ts';
import type { Connection } from './connection.ts';
import { INCOMPLETE, malformedLength, remainingLength, topicEndOf } from './frames.ts';
import { detachFrom, PartialPacket } from './partial-packet.ts';
import { Pause } from './pause.ts';
import type { ConnectionOwner, HandlerTable } from './ports.ts';
import { PublishedTopics } from './published-topics.ts';
import type { RateLimits } from './rate-limit.ts';
import { RECEIVED } from './received-counters.ts';

/** While one of these pauses is set, received bytes are stored but not parsed. */
const UNREAD = Pause.hook | Pause.turn;

/**
 * Units that every connection may use in one turn. A connection that did not wait in the previous turn may also draw on the spare units
 * of the turn (`drawShare`). Input beyond that waits until the other connections have been served (`serveLater`).
 *
 * A unit is about 0.03 us of CPU time. A frame on the fast path costs one unit; any other packet costs `COSTS`, and `BYTE_COSTS` for
 * each of its bytes. Reading 64 bytes from the stream costs one unit, and so do two receivers of a message.
 */
export const SHARE = 1_024;
/** Maximum number of bytes that are parsed in one turn: the size of one read from a socket. */
const SHARE_BYTES = 65_536;
/** Units by packet type. */
const COSTS: readonly number[] = [4, 512, 4, 8, 2, 4, 4, 4, 256, 4, 256, 4, 1, 4, 4, 512];
/** Units for each byte, by packet type. A SUBSCRIBE or UNSUBSCRIBE costs about 0.5 us per filter, and a filter takes 5 to 10 bytes. */
const BYTE_COSTS: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0];

/** Not specified: a chunk of at least this size resets the keep alive, even if it completes no packet. A large packet may take long. */
const PROGRESS_BYTES = 256;
/**
 * Number of unread bytes above which the stream is paused while a hook decides. It is not paused before, because a paused stream does not
 * report its end.
 */
const HELD_UNPAUSED_BYTES = 16_384;

const NO_BYTES = Buffer.alloc(0);

/** The first byte of a PUBLISH with QoS 0 that is neither retained nor a duplicate. */
const PLAIN_PUBLISH = 0x30;

/**
 * The bytes from one client.
 *
 * The reader parses the chunks of a stream in place, checks the length of a packet before its body, and calls the current handler for its
 * type. It stops reading while there is a reason to (`Pause`), or when the connection has used its share of a turn.
 */
export class Reader<S extends ConnectionOwner> {
  readonly #connection: Connection<S>;
  /** The handlers, by packet type, of the current state of the session, which replaces them (`use`). */
  #table: HandlerTable<S>;
  /** Maximum packet size in bytes. Until the CONNECT is accepted, the zone's `maxConnectSize` applies as well. */
  #maxPacketSize: number;
  /** Layout of PUBLISH packets while the client is connected. 0: the client is not connected, or its topics are rewritten or mounted. */
  fastPath: 0 | 4 | 5 = 0;
  /** Bits of `Pause`. */
  pauses = 0;
  /** Monotonic milliseconds of the last received packet. */
  lastReceivedMs: number;
  receivedBytes = 0;
  receivedChunks = 0;
  receivedPackets = 0;
  receivedMessages = 0;
  #rates: RateLimits | undefined = undefined;
  /** The topics that the client publishes to; undefined until the first PUBLISH. */
  knownTopics: PublishedTopics | undefined = undefined;
  /** Bytes that were received but not parsed; see `UNREAD`. */
  #unread: Buffer = NO_BYTES;
  /** The last turn in which this connection was read, and the units left of its share. */
  #turn = -1;
  #unitsLeft = 0;
  /** The last turn in which this connection had to wait. */
  #waitedTurn = -2;
  #partial: PartialPacket | undefined = undefined;
  #isParsing = false;
  #arrivedChunks: Buffer[] | undefined = undefined;
  #isCatchingUp = false;
  #pendingHooks = 0;

  constructor(connection: Connection<S>, maxPacketSize: number) {
    this.#connection = connection;
    this.#table = connection.ports.handlers.beforeConnect;
    this.#maxPacketSize = maxPacketSize;
    this.lastReceivedMs = connection.ports.time.nowMs;
  }

  // ----------------------------------------------------------------------------------------------------------------- chunks

  receive(chunk: Buffer): void {
    const connection = this.#connection;
    if (connection.isClosed) {
      connection.discarded(chunk.length);
      return;
    }
    if (this.#isParsing) {
      // the stream answered during a write: its data is read after the current chunk
      (this.#arrivedChunks ??= []).push(chunk);
      return;
    }
    const { ports } = connection;
    ports.time.read();
    if (chunk.length >= PROGRESS_BYTES) this.lastReceivedMs = ports.time.nowMs;
    ports.taps.look();
    this.receivedBytes += chunk.length;
    this.receivedChunks++;
    ports.metrics.counts[Metric.bytesReceived] += chunk.length;
    if ((this.pauses & UNREAD) !== 0 || !this.#hasShare()) this.#storeUnread(chunk);
    else {
      this.#parse(chunk, 0);
      this.#parsed();
    }
    this.#unitsLeft -= Math.min(chunk.length, SHARE_BYTES) >> 6;
  }

  /** Read the chunks that arrived in the meantime, in order, after a chunk has been parsed as far as it may be. */
  #parsed(): void {
    const connection = this.#connection;
    if (this.#rates !== undefined && !connection.isClosed) this.#rates.charge(this, connection.ports.time.nowMs);
    if (this.#arrivedChunks === undefined || this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    for (let chunk = this.#arrivedChunks?.shift(); chunk !== undefined; chunk = this.#arrivedChunks?.shift())
      this.receive(chunk);
    this.#arrivedChunks = undefined;
    this.#isCatchingUp = false;
  }

  /**
   * Complete a partial packet and parse it in a separate buffer, so that the rest of the chunk need not be copied.
   * @returns the offset in the chunk at which the next packet begins
   */
  #completePacket(chunk: Buffer): number {
    let at = 0;
    while (this.#partial !== undefined && at < chunk.length) {
      const partial = this.#partial;
      at = partial.take(chunk, at);
      if (!partial.isComplete) return at;
      this.#partial = undefined;
      this.#parse(partial.join(), 0);
    }
    return at;
  }

  /** Store bytes that may not be parsed yet: a hook decides on an earlier packet, or the share of this turn is used up. */
  #storeUnread(chunk: Buffer): void {
    const { session, ports } = this.#connection;
    const wasRestrained = this.#hasManyUnread;
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    // a single chunk may exceed the limits; a paused stream does not deliver a second one
    if (wasRestrained && this.#unread.length > this.#maxPacketSize + ports.limits.maxHeldBytes) {
      const when = (this.pauses & Pause.hook) !== 0 ? 'while a hook decided' : 'while reading was paused';
      session.fail(
        new ProtocolError(ReasonCode.quotaExceeded, `the client sent too many bytes ${when} (option maxHeldBytes)`),
        'quota'
      );
    } else this.#boundUnread();
  }

  get #hasManyUnread(): boolean {
    return this.#unread.length > Math.min(HELD_UNPAUSED_BYTES, this.#connection.ports.limits.maxHeldBytes);
  }

  /** Limit the unread bytes: wait for the next share of a turn, or pause the stream. */
  #boundUnread(): void {
    const { ports, stream } = this.#connection;
    if ((this.pauses & UNREAD) === 0) {
      this.pause(Pause.turn);
      this.#waitedTurn = ports.turn.number;
      ports.turn.serveLater(this.#connection);
    } else if (!this.#mayRead) stream.pause();
  }

  /** True if the stream may deliver data: reading is not paused, or only for a hook and with few unread bytes. */
  get #mayRead(): boolean {
    const { pauses } = this;
    return pauses === 0 || (pauses === Pause.hook && !this.#hasManyUnread);
  }

  /** True if bytes wait to be parsed for these reasons only (bits of `Pause`). */
  hasUnread(why: number = UNREAD): boolean {
    const { pauses } = this;
    return (pauses & why) !== 0 && (pauses & UNREAD & ~why) === 0 && this.#unread.length > 0;
  }

  // ------------------------------------------------------------------------------------------------------- share of a turn

  /** True if the connection may be read in this turn. */
  #hasShare(): boolean {
    this.#beginShare();
    return this.#hasUnits();
  }

  /** Begin the share of this turn, if the connection has not been read in this turn. */
  #beginShare(): void {
    const turn = this.#connection.ports.turn.number;
    if (this.#turn === turn) return;
    this.#turn = turn;
    this.#unitsLeft = SHARE;
  }

  /** True if the connection has units of its share left. If not, it draws spare units of the turn, unless it has had to wait recently. */
  #hasUnits(): boolean {
    return this.#unitsLeft > 0 || this.#drawUnits();
  }

  #drawUnits(): boolean {
    const { turn } = this.#connection.ports;
    if (this.#waitedTurn >= turn.number - 1) return false;
    while (this.#unitsLeft <= 0) {
      const units = turn.drawShare();
      if (units === 0) return false;
      this.#unitsLeft += units;
    }
    return true;
  }

  /** Parse the unread bytes, within a share of this many units. The broker calls this after `serveLater`. */
  serve(units: number): void {
    this.#waitedTurn = this.#turn = this.#connection.ports.turn.number;
    this.#unitsLeft = units;
    this.resume(Pause.turn);
  }

  // ---------------------------------------------------------------------------------------------------------------- packets

  /** Parse the packets of a chunk from `at` on, and call their handlers. */
  #parse(chunk: Buffer, at: number): void {
    const connection = this.#connection;
    if (this.#partial !== undefined) {
      at = this.#completePacket(chunk);
      if (at === chunk.length || connection.isClosed) return;
    }
    if (this.#unread.length > 0) {
      this.#storeUnread(chunk.subarray(at)); // the completed packet waits for a share: the bytes after it must not replace it
      return;
    }
    const { ports } = connection;
    const { taps, metrics } = ports;
    const { counts, deliveryTimes } = metrics;
    const packetsBefore = this.receivedPackets;
    const last = Math.min(chunk.length - 1, at + SHARE_BYTES);
    this.#isParsing = true;
    this.#beginShare();
    try {
      while (at < last && (this.pauses & Pause.hook) === 0 && !connection.isClosed && this.#hasUnits()) {
        const first = chunk[at];
        const size = remainingLength(chunk, at + 1);
        if (size < 0) {
          if (size === INCOMPLETE) break;
          throw malformedLength(size);
        }
        const body = at + 1 + varintLength(size);
        const end = body + size;
        const type = first >>> 4;
        if (type !== PacketType.connect && this.#table === ports.handlers.beforeConnect)
          throw new ProtocolError(ReasonCode.protocolError, 'the first packet must be CONNECT'); // [MQTT-3.1.0-1]
        if (end - at > this.#maxPacketSize) throw this.#tooLarge(chunk, body, end - at);
        if (end > chunk.length) {
          this.#partial = new PartialPacket(chunk, at, end - chunk.length);
          at = chunk.length;
          break;
        }
        if (first === PLAIN_PUBLISH && this.fastPath !== 0 && ports.publishing.hooks.isFastPathOpen) {
          const runEnd = this.#forwardRun(chunk, at, body, end, last);
          if (runEnd > at) {
            at = runEnd;
            continue;
          }
        }
        const { session } = connection;
        this.receivedPackets++;
        counts[Metric.packetsReceived]++;
        counts[RECEIVED[type]]++;
        if (taps.isOpen) taps.received(connection, chunk.subarray(at, end));
        checkFlags(type, first & 15, session.protocolVersion);
        this.#table[type](session, first & 15, chunk, at, body, end);
        this.#unitsLeft -= COSTS[type] + BYTE_COSTS[type] * (end - at);
        if (type === PacketType.publish && this.knownTopics !== undefined)
          this.#unitsLeft -= this.knownTopics.receivers >> 1;
        at = end;
      }
    } catch (error) {
      this.#isParsing = false;
      this.#failed(error, chunk, at);
      return;
    }
    this.#isParsing = false;
    if (this.receivedPackets !== packetsBefore) this.lastReceivedMs = ports.time.nowMs; // only packets count [MQTT-3.1.2-22]
    const sent = counts[Metric.messagesQos0Sent];
    if (sent >= deliveryTimes.due[0]) deliveryTimes.sent(ports.time.nowMs, sent);
    if (at < chunk.length && !connection.isClosed) this.#keepRest(chunk, at, last);
  }

  /**
   * Forward QoS 0 frames of one topic unchanged: the one in `[at, end)`, and those that follow up to `last`.
   * @returns the offset after them; `at` if this frame must be handled separately
   */
  #forwardRun(chunk: Buffer, at: number, body: number, end: number, last: number): number {
    const topicEnd = topicEndOf(chunk, body, end, this.fastPath);
    if (topicEnd === 0) return at;
    const connection = this.#connection;
    const { ports } = connection;
    const route = this.topics.routeForRun(connection.session, ports, chunk, body + 2, topicEnd);
    if (route === undefined) return at;
    let next = at;
    let count = 0;
    let longest = 0;
    this.#unitsLeft -= route.targets.length >> 1;
    do {
      if (end - next > longest) longest = end - next;
      next = end;
      count++;
      this.#unitsLeft--;
      end = next < last && this.#hasUnits() ? this.#endOfNext(chunk, next, route) : 0;
    } while (end > 0);
    this.receivedPackets += count;
    this.receivedMessages += count;
    ports.publishing.routeRun(connection, route, chunk, at, next, count, longest);
    return next;
  }

  /** The end of the frame at `at`, if it continues a run; 0 if not. */
  #endOfNext(chunk: Buffer, at: number, { bytes }: Route): number {
    if (chunk[at] !== PLAIN_PUBLISH) return 0;
    const size = remainingLength(chunk, at + 1);
    if (size < 0) return 0;
    const body = at + 1 + varintLength(size);
    const end = body + size;
    if (end > chunk.length || end - at > this.#maxPacketSize) return 0;
    const topicEnd = topicEndOf(chunk, body, end, this.fastPath);
    return topicEnd > 0 && isSameTopic(bytes, chunk, body + 2, topicEnd) ? end : 0;
  }

  #tooLarge(chunk: Buffer, body: number, size: number): ProtocolError {
    const connection = this.#connection;
    if (this.#table === connection.ports.handlers.beforeConnect)
      connection.connectReceived(peekConnectVersion(chunk, body, chunk.length));
    const option = connection.isConnackSent ? 'maxPacketSize' : 'maxConnectSize or maxPacketSize, the lower one';
    const text = `the packet has ${size} bytes, more than the limit of ${this.#maxPacketSize} (option ${option})`;
    return new ProtocolError(ReasonCode.packetTooLarge, text);
  }

  /** Handle an error of the packet at this offset. */
  #failed(error: unknown, chunk: Buffer, at: number): void {
    const { ports, session } = this.#connection;
    const isPublish = chunk[at] >>> 4 === PacketType.publish && this.#table !== ports.handlers.beforeConnect;
    if (isPublish) ports.metrics.counts[Metric.packetsPublishError]++;
    if (!(error instanceof ProtocolError)) session.failInternally(error, 'reading a packet');
    else if (isPublish) session.publishFailed(error, chunk, at);
    else session.fail(error);
  }

  /** Store the bytes from `at` on: an incomplete fixed header, or packets that may not be parsed yet. */
  #keepRest(chunk: Buffer, at: number, last: number): void {
    const mayParse = this.#unitsLeft > 0 && (this.pauses & Pause.hook) === 0;
    if (at < last ? mayParse : at === chunk.length - 1) {
      this.#partial = new PartialPacket(chunk, at, 1);
      return;
    }
    this.#unread = detachFrom(chunk, at);
    this.#boundUnread();
  }

  // ----------------------------------------------------------------------------------------------------------------- pauses

  /**
   * Stop reading until `resume` is called with the same reason. `Pause.hook` also stops the parsing of received bytes; hooks may overlap,
   * and each one pauses and resumes.
   * @param why one bit of `Pause`
   */
  pause(why: number): void {
    const { stream, isClosed } = this.#connection;
    this.pauses |= why;
    if (why === Pause.hook) this.#pendingHooks++;
    else if (!isClosed) stream.pause();
  }

  /** End a pause, and continue reading unless there is another one. @param why one bit of `Pause` */
  resume(why: number): void {
    if ((this.pauses & why) === 0) return;
    if (why === Pause.hook && --this.#pendingHooks > 0) return;
    const connection = this.#connection;
    const { time } = connection.ports;
    this.pauses &= ~why;
    time.read(); // the stored bytes are parsed now
    this.lastReceivedMs = time.nowMs; // the keep alive does not run while reading is paused
    if (connection.isClosed) return;
    if ((this.pauses & UNREAD) === 0 && this.#unread.length > 0 && !this.#isParsing) {
      const rest = this.#unread;
      this.#unread = NO_BYTES;
      this.#parse(rest, 0);
      this.#parsed();
    }
    if (connection.isClosed) return;
    if (connection.hasPeerEnded && (this.pauses & UNREAD) === 0) connection.readToEnd();
    else if (this.#mayRead) connection.stream.resume();
  }

  /** Pause reading for this time, because the client has exceeded its rates. */
  pauseFor(delayMs: number): void {
    this.pause(Pause.rate);
    this.#connection.ports.wheel.arm(new RatePause(this), delayMs);
  }

  /** Check the keep alive, which does not run while reading is paused. */
  keepAlive(nowMs: number): void {
    this.lastReceivedMs = nowMs;
  }

  // --------------------------------------------------------------------------------------------------- what the session sets

  /** Handle packets with these handlers from now on. */
  use(table: HandlerTable<S>): void {
    this.#table = table;
  }

  /**
   * Note that the client is connected.
   * @param maxPacketSize maximum packet size in bytes
   * @param fastPath forward runs of QoS 0 frames of this layout without looking at each; 0: none
   */
  admit(maxPacketSize: number, fastPath: 0 | 4 | 5): void {
    this.#maxPacketSize = maxPacketSize;
    if (!this.#connection.isClosed) this.fastPath = fastPath;
  }

  /** Apply these rate limits to the packets of the client. */
  limitRates(rates: RateLimits | undefined): void {
    this.#rates = rates;
  }

  /** Note that a PUBLISH has been received. */
  messageReceived(): void {
    this.receivedMessages++;
  }

  /** As `knownTopics`; created at the first use. */
  get topics(): PublishedTopics {
    return (this.knownTopics ??= new PublishedTopics());
  }

  /** Discard what is not parsed, because the connection has closed. */
  close(): void {
    this.fastPath = 0;
    this.#unread = NO_BYTES;
    this.#partial = undefined;
  }
}

/** Resumes a reader that was paused by its rate limits. */
class RatePause extends BaseTimer {
  readonly #reader: { resume(why: number): void };

  constructor(reader: { resume(why: number): void }) {
    super();
    this.#reader = reader;
  }

  ring(): void {
    this.#reader.resume(Pause.rate);
  }
}
