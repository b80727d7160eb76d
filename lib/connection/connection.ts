import type { Duplex } from 'node:stream';
import { ProtocolError } from '../base/errors.ts';
import type { DisconnectReason } from '../events/events.ts';
import { asError } from '../events/events.ts';
import { Metric } from '../events/metrics.ts';
import { checkFlags, peekConnectVersion } from '../packets/decode.ts';
import type { Frame } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { PacketType, type ProtocolVersion } from '../packets/types.ts';
import type { TransportInfo } from '../records/client.ts';
import type { CountedStream, GatheringStream } from '../records/listener.ts';
import type { Route } from '../routing/subscription.ts';
import type { UnwrittenShare } from '../store/unwritten.ts';
import { isSameTopic } from '../topics/topic.ts';
import type { AckQueue } from './ack-queue.ts';
import { type Output, takeOutput, writeOutput } from './output.ts';
import { Pause } from './pause.ts';
import type { ConnectionOwner, ConnectionPorts, HandlerTable } from './ports.ts';
import type { RateLimits } from './rate-limit.ts';
import { RECEIVED } from './received.ts';

/** While one of these is set, the bytes that have come wait unread. */
const UNREAD = Pause.hook | Pause.turn;

/**
 * Units that every connection may use in one turn. One that did not wait in the turn before may also draw on the spare ones of the turn (`drawShare`).
 * What it has sent beyond that waits behind the other connections (`serveLater`). A unit is about 0.03 us of CPU time: a frame on the fast path costs one, any other packet what `COSTS` says and `BYTE_COSTS` for each of
 * its bytes, reading 64 bytes from the stream costs one, and two receivers of a message cost one.
 */
export const SHARE = 1_024;
/** Bytes that are looked at in one turn at most: what a socket delivers at once. */
const SHARE_BYTES = 65_536;
/** Units by packet type. */
const COSTS: readonly number[] = [4, 512, 4, 8, 2, 4, 4, 4, 256, 4, 256, 4, 1, 4, 4, 512];
/** Units by packet type for each byte: a SUBSCRIBE or UNSUBSCRIBE costs about 0.5 us a filter, and a filter takes some 5 to 10 bytes. */
const BYTE_COSTS: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0];

/** Output of a turn that is written before the turn ends. */
const EARLY_FLUSH_BYTES = 131_072;
/** Answers (acknowledgements, PINGRESP) a client may leave unread before it is not read any more. */
const MAX_UNREAD_ANSWERS = 65_536;
/** Not specified: so much of a packet that is not complete yet counts as a sign of life, for the sake of large ones on slow lines. */
const PROGRESS_BYTES = 256;
/** Bytes held back by a hook past which the stream is paused. Up to there it is read, because the end of a paused one is not seen. */
const HELD_UNPAUSED_BYTES = 16_384;
/** How long the stream of an ended connection may take to deliver what was sent, then it is destroyed. */
const LINGER_MS = 3_000;
/** Bytes that it may still send meanwhile. They are thrown away; a peer that sends more is cut off. */
const LINGER_BYTES = 262_144;

/** Parts of a packet up to this size are joined as they come. */
const SMALL_PART = 16_384;

const NO_BYTES = Buffer.alloc(0);
const CONNECTION = Symbol('connection');

/** A topic that is not routed as it came. */
interface ForeignTopic {
  /** As it stands in packets. */
  readonly bytes: Buffer;
  /** That it is routed by. */
  readonly topic: string;
  readonly isRewritten: boolean;
  route: Route | undefined;
}

type Attached = Duplex & GatheringStream & CountedStream & { [CONNECTION]?: Connection<ConnectionOwner> };

/** Whether a connection reads this stream, or has read it. */
export function isAttached(stream: Duplex): boolean {
  return (stream as Attached)[CONNECTION] !== undefined;
}

/** One of Node's sockets knows how many bytes of the writes it has begun have not gone to the system yet. */
type MaybeSocket = Duplex & { readonly _handle?: { readonly writeQueueSize?: number } | null };

/**
 * Bytes and packets: reads a stream's chunks in place, checks lengths before bodies, hands each packet to the handler in force, and
 * gathers what is sent so that a turn costs one write.
 */
export class Connection<S extends ConnectionOwner> {
  readonly stream: Duplex;
  readonly transportInfo: TransportInfo;
  readonly ports: ConnectionPorts<S>;
  /** The session that its packets are for: its own until CONNACK, then the client's. */
  session: S;
  /** Handler of each packet type that is legal now. */
  table: HandlerTable<S>;
  /** The table until a CONNECT has come. */
  readonly #firstTable: HandlerTable<S>;
  /** In whose format a refusal is to be; undefined until the CONNECT told. */
  answerVersion: ProtocolVersion | undefined = undefined;
  /** Layout of PUBLISH packets while the client is live; 0: not live, or its topics are not taken as they come. */
  inboundFastPath: 0 | 4 | 5 = 0;
  /** Largest packet; until the CONNECT is accepted the zone's `maxConnectSize` bounds it, too. */
  maxPacketSize: number;
  isClosed = false;
  /** CONNACK success has gone out: from now on a close is told by DISCONNECT, before by CONNACK [MQTT-3.14.0-1]. */
  isWelcomed = false;
  rates: RateLimits | undefined = undefined;
  /** More is unsent than the mark: messages go to the backlog. */
  isBlocked = false;
  pauses = 0;
  /** Monotonic milliseconds of the last packet, and of the last progress of the output. */
  lastReceivedMs: number;
  lastProgressMs: number;
  /** Route of the last topic it published to, where it is worth remembering. */
  route: Route | undefined = undefined;
  /** What it has caused of the bytes that wait to be written. */
  unwritten: UnwrittenShare | undefined = undefined;
  /** Acknowledgements that wait for a commit. */
  late: AckQueue<Connection<S>> | undefined = undefined;
  /** The last topic it published to, where topics are rewritten or mounted. */
  foreign: ForeignTopic | undefined = undefined;
  /** Topics behind the client's aliases [MQTT-3.3.2-7]. */
  topicAliases: string[] | undefined = undefined;
  receivedBytes = 0;
  receivedChunks = 0;
  receivedPackets = 0;
  receivedMessages = 0;
  sentBytes = 0;
  sentWrites = 0;
  sentPackets = 0;
  sentMessages = 0;
  /** What has come and waits unread, see `UNREAD`. */
  #rest: Buffer = NO_BYTES;
  /** The last turn in which it was read, and what is left of its share. */
  #turn = -1;
  #left = 0;
  /** The last turn in which it had to wait. */
  #waitedTurn = -2;
  /** What has come of a packet that is not complete, and how many bytes it lacks, or 1 while its header does not say. */
  #parts: Buffer[] | undefined = undefined;
  #needed = 0;
  #isWalking = false;
  #arrived: Buffer[] | undefined = undefined;
  #isCatchingUp = false;
  #hooksAtWork = 0;
  /** Why the stream ended while bytes that came before waited unread. */
  #ended: { readonly reason: DisconnectReason; readonly reasonCode: number | undefined } | undefined = undefined;
  #output: Output | undefined = undefined;
  #outputBytes = 0;
  /** Bytes that the stream had unsent at the last look, and its socket, where it has one. */
  #unsent = 0;
  #unsentBySocket = 0;
  #discarded = 0;
  #hasPlace = true;
  #lingering: { dueMs: number } | undefined = undefined;

  constructor(
    stream: Duplex,
    transportInfo: TransportInfo,
    ports: ConnectionPorts<S>,
    session: S,
    firstTable: HandlerTable<S>,
    maxPacketSize: number
  ) {
    this.stream = stream;
    this.transportInfo = transportInfo;
    this.ports = ports;
    this.session = session;
    this.table = this.#firstTable = firstTable;
    this.maxPacketSize = maxPacketSize;
    this.lastReceivedMs = this.lastProgressMs = ports.time.nowMs;
  }

  /** Begin to read. The listeners are shared by all connections: a closure each would cost memory an idle connection should not take. */
  open(): void {
    const stream = this.stream as Attached;
    stream[CONNECTION] = this as unknown as Connection<ConnectionOwner>;
    stream.on('data', onData);
    stream.on('drain', onDrain);
    stream.on('error', onError);
    stream.on('close', onClose);
    stream.on('end', onEnd);
    stream.resume(); // one that was paused before is read, too
  }

  // ------------------------------------------------------------------------------------------------------------------ input

  receive(chunk: Buffer): void {
    if (this.isClosed) {
      this.#discarded += chunk.length;
      if (this.#discarded > LINGER_BYTES && !this.stream.destroyed) this.destroy();
      return;
    }
    if (this.#isWalking) {
      // a stream that answers within our write: its turn comes behind what is being read
      (this.#arrived ??= []).push(chunk);
      return;
    }
    const { ports } = this;
    ports.time.read();
    if (chunk.length >= PROGRESS_BYTES) this.lastReceivedMs = ports.time.nowMs;
    ports.taps.look();
    this.receivedBytes += chunk.length;
    this.receivedChunks++;
    ports.metrics.counts[Metric.bytesReceived] += chunk.length;
    if ((this.pauses & UNREAD) !== 0 || this.#share() <= 0) this.#keepUnread(chunk);
    else this.#read(chunk);
    this.#left -= Math.min(chunk.length, SHARE_BYTES) >> 6;
  }

  /** What is left of its share of this turn. */
  #share(): number {
    const turn = this.ports.turn.number;
    if (this.#turn !== turn) {
      this.#turn = turn;
      this.#left = SHARE;
    }
    if (this.#left <= 0) this.#left = this.#draw(this.#left);
    return this.#left;
  }

  /** Add to a share that is used up, where that is possible. */
  #draw(left: number): number {
    const { turn } = this.ports;
    if (this.#waitedTurn >= turn.number - 1) return left;
    let more = left;
    while (more <= 0) {
      const units = turn.drawShare();
      if (units === 0) break;
      more += units;
    }
    return more;
  }

  #read(chunk: Buffer): void {
    const at = this.#needed > 0 ? this.#complete(chunk) : 0;
    if (at < chunk.length && !this.isClosed) this.#walk(chunk, at);
    if (this.rates !== undefined && !this.isClosed) this.rates.settle(this, this.ports.time.nowMs);
    if (this.#arrived !== undefined) this.#receiveArrived();
  }

  /** Read what arrived while the connection was reading, in its order. */
  #receiveArrived(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    for (let chunk = this.#arrived?.shift(); chunk !== undefined; chunk = this.#arrived?.shift()) this.receive(chunk);
    this.#arrived = undefined;
    this.#isCatchingUp = false;
  }

  /** Stop reading for a while: the client has sent more than its rates allow. */
  pauseFor(delayMs: number): void {
    this.pause(Pause.rate);
    const timer = {
      dueMs: Infinity,
      slot: undefined,
      previous: undefined,
      next: undefined,
      ring: () => this.resume(Pause.rate)
    };
    this.ports.wheel.arm(timer, delayMs);
  }

  /**
   * Give the packet that is not complete what it lacks, and read it from a buffer of its own: the chunk is not copied for its sake.
   * @returns where in the chunk the next packet begins
   */
  #complete(chunk: Buffer): number {
    let at = 0;
    while (this.#needed > 0 && at < chunk.length) {
      const parts = this.#parts as Buffer[];
      const end = at + this.#needed;
      if (end > chunk.length) {
        gatherPart(parts, at === 0 ? chunk : chunk.subarray(at));
        this.#needed = end - chunk.length;
        return chunk.length;
      }
      parts.push(chunk.subarray(at, end));
      this.#parts = undefined;
      this.#needed = 0;
      at = end;
      this.#walk(Buffer.concat(parts), 0);
    }
    return at;
  }

  /** Keep what may not be read yet: a hook decides on an earlier packet, or the share of this turn is used up. */
  #keepUnread(chunk: Buffer): void {
    const wasRestrained = this.#isRestrained;
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    // one chunk may pass every bound; a stream that was told to pause delivers no other
    if (wasRestrained && this.#rest.length > this.maxPacketSize + this.ports.limits.maxHeldBytes) {
      const why = (this.pauses & Pause.hook) !== 0 ? 'while a hook decides' : 'although reading was paused';
      this.session.fail(
        new ProtocolError(ReasonCode.quotaExceeded, `too much was sent ${why} (option maxHeldBytes)`),
        'quota'
      );
    } else this.#restrain();
  }

  get #isRestrained(): boolean {
    return this.#rest.length > Math.min(HELD_UNPAUSED_BYTES, this.ports.limits.maxHeldBytes);
  }

  /** Bytes wait unread: more of them only within bounds. */
  #restrain(): void {
    if ((this.pauses & UNREAD) === 0) {
      this.pause(Pause.turn);
      this.#waitedTurn = this.ports.turn.number;
      this.ports.turn.serveLater(this);
    } else if (!this.#mayFlow) this.stream.pause();
  }

  /** Nothing but a hook keeps it from reading, and little waits for that. */
  get #mayFlow(): boolean {
    const { pauses } = this;
    return pauses === 0 || (pauses === Pause.hook && !this.#isRestrained);
  }

  /** Its turn has come again: read what waits, within a share of so many units. */
  serve(units: number): void {
    this.#waitedTurn = this.#turn = this.ports.turn.number;
    this.#left = units;
    this.resume(Pause.turn);
  }

  /** Read the packets from `at` on. */
  #walk(chunk: Buffer, at: number): void {
    const { ports } = this;
    const length = chunk.length;
    const packetsBefore = this.receivedPackets;
    this.#isWalking = true;
    let run: Route | undefined;
    let runStart = 0;
    let runCount = 0;
    let longest = 0;
    const last = Math.min(length - 1, at + SHARE_BYTES);
    let left = this.#share();
    try {
      while (at < last && (this.pauses & Pause.hook) === 0 && !this.isClosed) {
        if (left <= 0) {
          left = this.#draw(left);
          if (left <= 0) break;
        }
        const first = chunk[at];
        let body = at + 2;
        let size = chunk[at + 1];
        if (size > 127) {
          size &= 127;
          let shift = 7;
          for (;;) {
            if (body >= length) {
              size = -1;
              break;
            }
            const byte = chunk[body++];
            size += (byte & 127) << shift;
            if (byte < 128) {
              // [MQTT-1.5.5-1]
              if (byte === 0)
                throw new ProtocolError(ReasonCode.malformedPacket, 'remaining length takes more bytes than needed');
              break;
            }
            shift += 7;
            if (shift > 21)
              throw new ProtocolError(ReasonCode.malformedPacket, 'remaining length takes more than four bytes');
          }
          if (size < 0) break;
        }
        const end = body + size;
        if (first >>> 4 !== PacketType.connect && this.table === this.#firstTable) {
          throw new ProtocolError(ReasonCode.protocolError, 'the first packet must be CONNECT'); // [MQTT-3.1.0-1]
        }
        if (end - at > this.maxPacketSize) {
          throw this.#tooLarge(chunk, body, end - at);
        }
        if (end > length) {
          if (run !== undefined) {
            const ended = run;
            run = undefined; // before it is routed: should that fail, it is not to be routed again
            ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest); // up to here, not to the end of the chunk
          }
          if (!this.isClosed) this.#await(chunk, at, end - length);
          at = length;
          break;
        }
        if (first === 0x30 && this.inboundFastPath !== 0 && ports.publishing.isFastPathOpen) {
          const topicAt = body + 2;
          const topicEnd = topicAt + ((chunk[body] << 8) | chunk[body + 1]);
          if (
            topicEnd > topicAt &&
            (this.inboundFastPath === 4 ? topicEnd <= end : topicEnd < end && chunk[topicEnd] === 0)
          ) {
            let route = this.route;
            if (
              route === undefined ||
              !isSameTopic(route.bytes, chunk, topicAt, topicEnd) ||
              !ports.routing.isFresh(route)
            ) {
              if (run !== undefined) {
                // what the new topic reaches may depend on what is delivered before
                const ended = run;
                run = undefined;
                ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest);
              }
              route = ports.routing.resolve(chunk, topicAt, topicEnd);
              this.session.checkRoute(route);
              this.route = route.isStale ? undefined : route;
            }
            if (route.kind === 0) {
              if (run === undefined) {
                run = route;
                runStart = at;
                runCount = longest = 0;
                left -= route.targets.length >> 1;
              }
              left--;
              runCount++;
              if (end - at > longest) longest = end - at;
              at = end;
              continue;
            }
          }
        }
        if (run !== undefined) {
          const ended = run;
          run = undefined;
          ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest);
          if (this.isClosed) break;
        }
        const type = first >>> 4;
        this.#packet(type, first & 15, chunk, at, body, end);
        left -= COSTS[type] + BYTE_COSTS[type] * (end - at);
        if (type === PacketType.publish && this.route !== undefined) left -= this.route.targets.length >> 1;
        at = end;
      }
      if (run !== undefined) {
        const ended = run;
        run = undefined;
        ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest);
      }
    } catch (error) {
      if (run !== undefined && !this.isClosed)
        ports.publishing.routeRun(this, run, chunk, runStart, at, runCount, longest);
      this.#isWalking = false;
      if (chunk[at] >>> 4 === PacketType.publish && this.table !== this.#firstTable)
        ports.metrics.counts[Metric.packetsPublishError]++;
      if (error instanceof ProtocolError) this.session.fail(error);
      else this.session.broke(error, 'reading a packet');
      return;
    }
    this.#isWalking = false;
    this.#left = left;
    if (this.receivedPackets !== packetsBefore) this.lastReceivedMs = ports.time.nowMs; // not for bytes that trickle [MQTT-3.1.2-22]
    if (at >= length || this.isClosed) return;
    if (at < last ? left > 0 && (this.pauses & Pause.hook) === 0 : at === length - 1) {
      this.#await(chunk, at, 1);
      return;
    }
    this.#rest = keep(chunk, at);
    this.#restrain();
  }

  #tooLarge(chunk: Buffer, body: number, size: number): ProtocolError {
    if (this.table === this.#firstTable) this.answerVersion = peekConnectVersion(chunk, body, chunk.length);
    const option = this.isWelcomed ? 'maxPacketSize' : 'maxConnectSize, at most maxPacketSize';
    const text = `packet of ${size} bytes, ${this.maxPacketSize} are allowed (option ${option})`;
    return new ProtocolError(ReasonCode.packetTooLarge, text);
  }

  /** A packet before CONNACK has come. */
  packetTaken(): void {
    (this.stream as Attached).packetTaken?.();
  }

  /** The CONNECT is accepted. */
  admitted(maxPacketSize: number): void {
    this.isWelcomed = true;
    this.maxPacketSize = maxPacketSize;
    (this.stream as Attached).admitted?.();
  }

  #packet(type: number, flags: number, chunk: Buffer, at: number, body: number, end: number): void {
    const { counts } = this.ports.metrics;
    this.receivedPackets++;
    counts[Metric.packetsReceived]++;
    counts[RECEIVED[type]]++;
    if (this.ports.taps.isOpen) this.ports.taps.received(this, chunk.subarray(at, end));
    checkFlags(type, flags, this.session.protocolVersion);
    this.table[type](this.session, flags, chunk, at, body, end);
  }

  /** The packet at `at` is not complete. Only its parts are kept, never room for what it announces. */
  #await(chunk: Buffer, at: number, needed: number): void {
    this.#parts = [keep(chunk, at)];
    this.#needed = needed;
  }

  /** Hold back later packets until `resume`: a hook decides on this one. Hooks may overlap, each pauses and resumes. */
  pause(why: number): void {
    this.pauses |= why;
    if (why === Pause.hook) this.#hooksAtWork++;
    else if (!this.isClosed) this.stream.pause();
  }

  resume(why: number): void {
    if ((this.pauses & why) === 0) return;
    if (why === Pause.hook && --this.#hooksAtWork > 0) return;
    this.pauses &= ~why;
    this.ports.time.read(); // what was held back is read now
    this.lastReceivedMs = this.ports.time.nowMs; // keep alive does not run while we do not read
    if (this.isClosed) return;
    if ((this.pauses & UNREAD) === 0 && this.#rest.length > 0 && !this.#isWalking) {
      const rest = this.#rest;
      this.#rest = NO_BYTES;
      this.#read(rest);
    }
    if (this.isClosed) return;
    if (this.#ended !== undefined && (this.pauses & UNREAD) === 0) {
      this.flush();
      this.lost(this.#ended.reason, this.#ended.reasonCode);
      this.stream.end();
    } else if (this.#mayFlow) this.stream.resume();
  }

  // ----------------------------------------------------------------------------------------------------------------- output

  /** Queue a frame: `mark` -1 to send it as it lies, else its first byte and packet id (`first << 16 | id`). */
  push(frame: Frame, mark: number, bytes: number): void {
    let output = this.#output;
    if (output === undefined) {
      output = this.#output = takeOutput();
      this.ports.turn.flushLater(this);
    }
    const at = output.count++;
    output.frames[at] = frame;
    output.marks[at] = mark;
    this.#outputBytes += bytes;
    if (this.#outputBytes > EARLY_FLUSH_BYTES) this.flush();
  }

  /** Queue an acknowledgement of four bytes. */
  acknowledge(value: number): void {
    let output = this.#output;
    if (output === undefined) {
      output = this.#output = takeOutput();
      this.ports.turn.flushLater(this);
    }
    const at = output.count++;
    output.frames[at] = undefined;
    output.marks[at] = value;
    this.#outputBytes += 4;
    this.sentPackets++;
    const { counts } = this.ports.metrics;
    counts[Metric.packetsSent]++;
    if (this.ports.taps.isOpen)
      this.ports.taps.sent(this, Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]));
    if (this.isBlocked && this.#outputBytes > MAX_UNREAD_ANSWERS) this.pause(Pause.answers);
  }

  /** Queue a packet that is not a PUBLISH. @param metric its counter */
  send(packet: Buffer, metric: number): void {
    if (packet.length > 0) this.sendFrame({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, metric);
  }

  /** Queue a packet that fills its buffer. @param metric its counter */
  sendFrame(frame: Frame, metric: number): void {
    this.push(frame, -1, frame.end);
    this.sentPackets++;
    const { counts } = this.ports.metrics;
    counts[Metric.packetsSent]++;
    counts[metric]++;
    if (this.ports.taps.isOpen) this.ports.taps.sent(this, frame.buf);
    if (this.isBlocked && this.#outputBytes > MAX_UNREAD_ANSWERS) this.pause(Pause.answers);
  }

  /** Write what is queued, unless the stream has too much unsent already. */
  flush(): void {
    const output = this.#output;
    if (output === undefined || this.isBlocked) return;
    const { stream, ports } = this;
    const bytes = this.#outputBytes;
    this.#output = undefined;
    this.#outputBytes = 0;
    if (!stream.writable) {
      output.count = 0;
      output.frames.fill(undefined);
      return;
    }
    this.sentBytes += bytes;
    this.sentWrites++;
    ports.metrics.counts[Metric.bytesSent] += bytes;
    let isRoomy: boolean;
    try {
      isRoomy = writeOutput(output, bytes, stream);
    } catch (error) {
      // Not thrown on: this may be the middle of routing another client's message. The stream tells of it itself, as of any error.
      stream.destroy(asError(error));
      return;
    }
    if (!isRoomy && stream.writableLength > ports.limits.outputHighWaterMark) this.#block();
  }

  #block(): void {
    this.isBlocked = true;
    this.#unsent = 0;
    this.lookForProgress(this.ports.clock.monotonic());
    this.session.updateFastPath();
    this.session.rearm();
  }

  /**
   * While blocked: note whether the stream has sent anything since the last look. Nothing is added meanwhile, so what it has unsent can
   * only have become less. A stream counts a write until all of it has gone; how much of it has, a socket knows.
   */
  lookForProgress(nowMs: number): void {
    const { writableLength, _handle } = this.stream as MaybeSocket;
    const bySocket = _handle?.writeQueueSize ?? 0;
    if (writableLength === this.#unsent && bySocket === this.#unsentBySocket) return;
    this.#unsent = writableLength;
    this.#unsentBySocket = bySocket;
    this.lastProgressMs = nowMs;
  }

  drained(): void {
    this.lastProgressMs = this.ports.time.readMonotonic(); // what waited may have expired
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.flush();
    if (this.isBlocked) return;
    this.resume(Pause.answers);
    if (this.isClosed) return;
    this.session.updateFastPath();
    this.session.pump();
  }

  // -------------------------------------------------------------------------------------------------------------------- end

  /** Its close is under way: it no longer counts for `maxConnections`, here and at its listener. */
  #freePlace(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.ports.connections.placeFreed();
    (this.stream as Attached).placeFreed?.();
  }

  /**
   * Send what is queued and end the stream. What still comes in is thrown away; a peer that does not close is cut off. One that has been
   * sent nothing is cut off at once: there is no answer that unread bytes could make the system discard.
   */
  end(): void {
    if (this.isClosed) return;
    if (this.sentPackets === 0) {
      this.destroy();
      return;
    }
    this.#freePlace();
    this.isClosed = true;
    this.inboundFastPath = 0;
    this.#rest = NO_BYTES;
    this.#parts = undefined;
    this.#needed = 0;
    this.isBlocked = false;
    const { stream } = this;
    if (stream.destroyed) {
      this.closed();
      return;
    }
    this.flush();
    stream.end();
    stream.resume(); // so that the peer's own end is seen
    const timer = {
      dueMs: Infinity,
      slot: undefined,
      previous: undefined,
      next: undefined,
      ring: () => this.destroy()
    };
    this.#lingering = timer;
    this.ports.wheel.arm(timer, LINGER_MS);
  }

  /** Cut it off: nothing more is sent. */
  destroy(): void {
    this.#freePlace();
    this.isClosed = true;
    this.inboundFastPath = 0;
    this.#rest = NO_BYTES;
    this.#parts = undefined;
    this.#needed = 0;
    if (!this.stream.destroyed) this.stream.destroy();
    this.closed(); // a stream need not tell of its close
  }

  /** Nothing more comes from the stream, and nothing goes. */
  closed(): void {
    const timer = this.#lingering;
    if (timer !== undefined) this.ports.wheel.disarm(timer as never);
    this.#lingering = undefined;
    // What came before and waits unread is the broker's to read or, when it stops, to discard: until then the connection counts.
    if (this.isClosed || this.#ended === undefined) this.ports.connections.streamClosed(this);
  }

  /** Nothing more will come, but packets that came before wait unread. */
  get hasPeerEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Nothing more will come. Packets that wait unread were sent before that, a DISCONNECT perhaps among them: they come first. */
  peerEnded(): void {
    this.#freePlace();
    if ((this.pauses & UNREAD) !== 0 && this.#rest.length > 0 && !this.isClosed)
      this.#ended ??= { reason: 'closed', reasonCode: undefined };
    else if (this.#ended === undefined || this.isClosed) this.lost('closed');
  }

  /** The stream failed. What waits for a share of the next turn comes first; what a hook holds back is given up. */
  failed(reason: DisconnectReason, reasonCode: number | undefined): void {
    this.#freePlace();
    if ((this.pauses & UNREAD) === Pause.turn && this.#rest.length > 0 && !this.isClosed) {
      this.#ended = { reason, reasonCode };
      return;
    }
    this.lost(reason, reasonCode);
    this.destroy();
  }

  /** The peer has gone. Where we had ended the connection before, it may still take what was sent: that goes on as long as it may. */
  lost(reason: DisconnectReason, reasonCode?: number): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.inboundFastPath = 0;
    this.#rest = NO_BYTES;
    this.#parts = undefined;
    this.#needed = 0;
    this.#output = undefined;
    this.session.connectionLost(reason, reasonCode);
    this.destroy();
  }
}

/** The bytes from `at` on, for later turns: copied, unless they are most of what they would keep in memory. */
function keep(chunk: Buffer, at: number): Buffer {
  const part = at === 0 ? chunk : chunk.subarray(at);
  return part.length * 2 < part.buffer.byteLength ? joined(part) : part;
}

/** The bytes of all, in memory of their own: in that of Node's pool a few bytes keep a slab of 64 KB from Node 24 on. */
function joined(...parts: readonly Buffer[]): Buffer {
  const own = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(own, at);
  return own;
}

/**
 * Put a chunk behind the parts of a packet. Small ones are joined with those before them, as in a binary counter: a chunk of one byte
 * takes some 200 in memory.
 */
function gatherPart(parts: Buffer[], chunk: Buffer): void {
  parts.push(chunk);
  for (let last = parts.length - 1; last > 0; last--) {
    if (parts[last].length > SMALL_PART || parts[last - 1].length > parts[last].length) return;
    parts[last - 1] = joined(parts[last - 1], parts[last]);
    parts.pop();
  }
}

function onData(this: Attached, chunk: Buffer | string): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  try {
    connection.receive(
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk as Uint8Array)
    );
  } catch (error) {
    connection.session.broke(error, 'reading a chunk');
  }
}

function onDrain(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  try {
    connection.drained();
  } catch (error) {
    connection.session.broke(error, 'draining');
  }
}

function onError(this: Attached, error: unknown): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  const reason = connection.session.streamFailed(asError(error));
  connection.failed(reason, error instanceof ProtocolError ? error.reasonCode : undefined);
}

function onEnd(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  connection.peerEnded();
}

function onClose(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  connection.peerEnded();
  connection.closed();
}
