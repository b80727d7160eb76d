import type { Duplex } from 'node:stream';
import { ProtocolError } from '../base/errors.ts';
import { asError } from '../events/events.ts';
import { Metric } from '../events/metrics.ts';
import type { DisconnectReason } from '../events/reasons.ts';
import { checkFlags, peekConnectVersion } from '../packets/decode.ts';
import type { Frame } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { PacketType, type ProtocolVersion } from '../packets/types.ts';
import type { TransportInfo } from '../records/client.ts';
import type { CountedStream, GatheringStream } from '../records/listener.ts';
import type { Route } from '../routing/subscription.ts';
import type { Ledger } from '../store/ledger.ts';
import type { UnwrittenShare } from '../store/unwritten.ts';
import { isSameTopic } from '../topics/topic.ts';
import { AckQueue, type AckSender } from './ack-queue.ts';
import { markedCopy, type Output, takeOutput, writeOutput } from './output.ts';
import { Pause } from './pause.ts';
import type { ConnectionOwner, ConnectionPorts, HandlerTable } from './ports.ts';
import type { RateLimits } from './rate-limit.ts';
import { RECEIVED } from './received.ts';
import { Verdicts } from './verdicts.ts';

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
/** Most bytes that are parsed in one turn: the size of one read from a socket. */
const SHARE_BYTES = 65_536;
/** Units by packet type. */
const COSTS: readonly number[] = [4, 512, 4, 8, 2, 4, 4, 4, 256, 4, 256, 4, 1, 4, 4, 512];
/** Units for each byte, by packet type. A SUBSCRIBE or UNSUBSCRIBE costs about 0.5 us per filter, and a filter takes 5 to 10 bytes. */
const BYTE_COSTS: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0];

/** Output above this size is written before the turn ends. */
const EARLY_FLUSH_BYTES = 131_072;
/** Bytes of answers (acknowledgements, PINGRESP) that a client may leave unread before reading from it is paused. */
const MAX_UNREAD_ANSWERS = 65_536;
/** Not specified: a chunk of at least this size resets the keep alive, even if it completes no packet. A large packet may take long. */
const PROGRESS_BYTES = 256;
/** While a hook decides, the stream is paused above this many unread bytes, not before: a paused stream does not report its end. */
const HELD_UNPAUSED_BYTES = 16_384;
/** Time that the stream of an ended connection has to deliver its output. Then it is destroyed. */
const LINGER_MS = 3_000;
/** Bytes that the peer may send during that time. They are discarded; a peer that sends more is disconnected. */
const LINGER_BYTES = 262_144;

/** Parts of an incomplete packet up to this size are joined as they arrive. */
const SMALL_PART = 16_384;

const NO_BYTES = Buffer.alloc(0);
const CONNECTION = Symbol('connection');

type Attached = Duplex & GatheringStream & CountedStream & { [CONNECTION]?: Connection<ConnectionOwner> };

/** Whether a connection reads this stream, or did so before. */
export function isAttached(stream: Duplex): boolean {
  return (stream as Attached)[CONNECTION] !== undefined;
}

/** A socket of Node.js knows how many bytes of its pending writes have not been passed to the operating system. */
type MaybeSocket = Duplex & { readonly _handle?: { readonly writeQueueSize?: number } | null };

/**
 * The bytes in and out of one client.
 *
 * It parses the chunks of a stream in place, checks the length of a packet before its body, and calls the handler that is in force for
 * its type. Packets to the client are gathered, so that a turn costs one write.
 */
export class Connection<S extends ConnectionOwner> {
  readonly stream: Duplex;
  readonly transportInfo: TransportInfo;
  readonly ports: ConnectionPorts<S>;
  /** The session that handles the packets: a provisional one until CONNACK, then the client's. */
  session: S;
  /** The handlers in force, by packet type. */
  table: HandlerTable<S>;
  /** The handlers in force until a CONNECT has been received. */
  readonly #tableBeforeConnect: HandlerTable<S>;
  /** Protocol version of a CONNACK that refuses the client; undefined until the CONNECT has been read. */
  answerVersion: ProtocolVersion | undefined = undefined;
  /** Layout of PUBLISH packets while the client is connected. 0: the client is not connected, or its topics are rewritten or mounted. */
  inboundFastPath: 0 | 4 | 5 = 0;
  /** Largest packet in bytes. Until the CONNECT is accepted, the zone's `maxConnectSize` applies as well. */
  maxPacketSize: number;
  isClosed = false;
  /** CONNACK with success has been sent. From then on a close is reported by DISCONNECT, before that by CONNACK [MQTT-3.14.0-1]. */
  isConnackSent = false;
  rates: RateLimits | undefined = undefined;
  /** The stream has more unsent bytes than `outputHighWaterMark`: messages go to the backlog. */
  isBlocked = false;
  /** Bits of `Pause`. */
  pauses = 0;
  /** Monotonic milliseconds of the last packet received. */
  lastReceivedMs: number;
  /** Monotonic milliseconds at which the stream last sent something. */
  lastProgressMs: number;
  /** Route of the last topic that the client published to; undefined if it is stale. */
  route: Route | undefined = undefined;
  /** The bytes not yet written to the store that this client has caused. */
  unwritten: UnwrittenShare | undefined = undefined;
  /** Acknowledgements that wait for a commit. */
  pendingAcks: AckQueue<Connection<S>> | undefined = undefined;
  receivedBytes = 0;
  receivedChunks = 0;
  receivedPackets = 0;
  receivedMessages = 0;
  sentBytes = 0;
  sentWrites = 0;
  sentPackets = 0;
  sentMessages = 0;
  /** Bytes that were received but not parsed, see `UNREAD`. */
  #unread: Buffer = NO_BYTES;
  /** The last turn in which this connection was read, and the units left of its share. */
  #turn = -1;
  #unitsLeft = 0;
  /** The last turn in which this connection had to wait. */
  #waitedTurn = -2;
  /** The parts of an incomplete packet, and the number of missing bytes, or 1 while the fixed header is incomplete. */
  #parts: Buffer[] | undefined = undefined;
  #missingBytes = 0;
  #isParsing = false;
  #arrivedChunks: Buffer[] | undefined = undefined;
  #isCatchingUp = false;
  #pendingHooks = 0;
  /** Why the stream ended, if it did so while bytes were unread. */
  #streamEnd: { readonly reason: DisconnectReason; readonly reasonCode: number | undefined } | undefined = undefined;
  /** The route of the last run of the fast path, if it is in the table of routes. Set only while the client may publish to its topic. */
  #runRoute: Route | undefined = undefined;
  #verdicts: Verdicts | undefined = undefined;
  #output: Output | undefined = undefined;
  #outputBytes = 0;
  /** Unsent bytes of the stream, and of its socket if it has one, when progress was last checked. */
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
    this.table = this.#tableBeforeConnect = firstTable;
    this.maxPacketSize = maxPacketSize;
    this.lastReceivedMs = this.lastProgressMs = ports.time.nowMs;
  }

  /** Begin to read. All connections share the listener functions: closures would cost memory for each idle connection. */
  open(): void {
    const stream = this.stream as Attached;
    stream[CONNECTION] = this as unknown as Connection<ConnectionOwner>;
    stream.on('data', onData);
    stream.on('drain', onDrain);
    stream.on('error', onError);
    stream.on('close', onClose);
    stream.on('end', onEnd);
    stream.resume(); // the app may have handed in a paused stream
  }

  // ------------------------------------------------------------------------------------------------------------------ input

  receive(chunk: Buffer): void {
    if (this.isClosed) {
      this.#discarded += chunk.length;
      if (this.#discarded > LINGER_BYTES && !this.stream.destroyed) this.destroy();
      return;
    }
    if (this.#isParsing) {
      // the stream answered during a write: its data is read after the current chunk
      (this.#arrivedChunks ??= []).push(chunk);
      return;
    }
    const { ports } = this;
    ports.time.read();
    if (chunk.length >= PROGRESS_BYTES) this.lastReceivedMs = ports.time.nowMs;
    ports.taps.look();
    this.receivedBytes += chunk.length;
    this.receivedChunks++;
    ports.metrics.counts[Metric.bytesReceived] += chunk.length;
    if ((this.pauses & UNREAD) !== 0 || this.#shareLeft() <= 0) this.#storeUnread(chunk);
    else this.#read(chunk);
    this.#unitsLeft -= Math.min(chunk.length, SHARE_BYTES) >> 6;
  }

  /** The units left of this connection's share of the turn. */
  #shareLeft(): number {
    const turn = this.ports.turn.number;
    if (this.#turn !== turn) {
      this.#turn = turn;
      this.#unitsLeft = SHARE;
    }
    if (this.#unitsLeft <= 0) this.#unitsLeft = this.#drawUnits(this.#unitsLeft);
    return this.#unitsLeft;
  }

  /** Add spare units of the turn to a share that is used up, if the connection may have some. */
  #drawUnits(left: number): number {
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
    const at = this.#missingBytes > 0 ? this.#completePacket(chunk) : 0;
    if (at < chunk.length && !this.isClosed) {
      if (this.#unread.length === 0) this.#parse(chunk, at);
      else this.#storeUnread(chunk.subarray(at)); // the completed packet waits for a share: what follows it may not replace it
    }
    if (this.rates !== undefined && !this.isClosed) this.rates.charge(this, this.ports.time.nowMs);
    if (this.#arrivedChunks !== undefined) this.#receiveArrivedChunks();
  }

  /** Read the chunks that arrived during parsing, in order. */
  #receiveArrivedChunks(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    for (let chunk = this.#arrivedChunks?.shift(); chunk !== undefined; chunk = this.#arrivedChunks?.shift())
      this.receive(chunk);
    this.#arrivedChunks = undefined;
    this.#isCatchingUp = false;
  }

  /** Stop reading for a time, because the client has exceeded its rates. */
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
   * Complete a partial packet and parse it in a buffer of its own, so that the rest of the chunk need not be copied.
   * @returns the offset in the chunk at which the next packet begins
   */
  #completePacket(chunk: Buffer): number {
    let at = 0;
    while (this.#missingBytes > 0 && at < chunk.length) {
      const parts = this.#parts as Buffer[];
      const end = at + this.#missingBytes;
      if (end > chunk.length) {
        gatherPart(parts, at === 0 ? chunk : chunk.subarray(at));
        this.#missingBytes = end - chunk.length;
        return chunk.length;
      }
      parts.push(chunk.subarray(at, end));
      this.#parts = undefined;
      this.#missingBytes = 0;
      at = end;
      this.#parse(Buffer.concat(parts), 0);
    }
    return at;
  }

  /** Store bytes that may not be parsed yet: a hook decides on an earlier packet, or the share of this turn is used up. */
  #storeUnread(chunk: Buffer): void {
    const wasRestrained = this.#hasManyUnread;
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    // a single chunk may exceed the bounds; a paused stream delivers no second one
    if (wasRestrained && this.#unread.length > this.maxPacketSize + this.ports.limits.maxHeldBytes) {
      const when = (this.pauses & Pause.hook) !== 0 ? 'while a hook decided' : 'while reading was paused';
      this.session.fail(
        new ProtocolError(ReasonCode.quotaExceeded, `the client sent too many bytes ${when} (option maxHeldBytes)`),
        'quota'
      );
    } else this.#boundUnread();
  }

  get #hasManyUnread(): boolean {
    return this.#unread.length > Math.min(HELD_UNPAUSED_BYTES, this.ports.limits.maxHeldBytes);
  }

  /** Bound the unread bytes: wait for the next share of a turn, or pause the stream. */
  #boundUnread(): void {
    if ((this.pauses & UNREAD) === 0) {
      this.pause(Pause.turn);
      this.#waitedTurn = this.ports.turn.number;
      this.ports.turn.serveLater(this);
    } else if (!this.#mayRead) this.stream.pause();
  }

  /** The stream may deliver data: reading is not paused, or only for a hook and with few unread bytes. */
  get #mayRead(): boolean {
    const { pauses } = this;
    return pauses === 0 || (pauses === Pause.hook && !this.#hasManyUnread);
  }

  /** Parse the unread bytes, within a share of this many units. The broker calls this after `serveLater`. */
  serve(units: number): void {
    this.#waitedTurn = this.#turn = this.ports.turn.number;
    this.#unitsLeft = units;
    this.resume(Pause.turn);
  }

  /** Parse the packets of a chunk from `at` on. */
  #parse(chunk: Buffer, at: number): void {
    const { ports } = this;
    const length = chunk.length;
    const packetsBefore = this.receivedPackets;
    this.#isParsing = true;
    let run: Route | undefined;
    let runStart = 0;
    let runCount = 0;
    let longest = 0;
    const last = Math.min(length - 1, at + SHARE_BYTES);
    let left = this.#shareLeft();
    try {
      while (at < last && (this.pauses & Pause.hook) === 0 && !this.isClosed) {
        if (left <= 0) {
          left = this.#drawUnits(left);
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
                throw new ProtocolError(ReasonCode.malformedPacket, 'the remaining length uses more bytes than needed');
              break;
            }
            shift += 7;
            if (shift > 21)
              throw new ProtocolError(ReasonCode.malformedPacket, 'the remaining length uses more than four bytes');
          }
          if (size < 0) break;
        }
        const end = body + size;
        if (first >>> 4 !== PacketType.connect && this.table === this.#tableBeforeConnect) {
          throw new ProtocolError(ReasonCode.protocolError, 'the first packet must be CONNECT'); // [MQTT-3.1.0-1]
        }
        if (end - at > this.maxPacketSize) {
          throw this.#tooLarge(chunk, body, end - at);
        }
        if (end > length) {
          if (run !== undefined) {
            const ended = run;
            run = undefined; // cleared first: if routing throws, the run must not be routed again
            ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest); // the run ends here, not with the chunk
          }
          if (!this.isClosed) this.#awaitRest(chunk, at, end - length);
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
            let route = this.#runRoute;
            if (
              route === undefined ||
              !isSameTopic(route.bytes, chunk, topicAt, topicEnd) ||
              !ports.routing.isFresh(route)
            ) {
              if (run !== undefined) {
                // delivering the run may change the receivers of the new topic
                const ended = run;
                run = undefined;
                ports.publishing.routeRun(this, ended, chunk, runStart, at, runCount, longest);
              }
              route = ports.routing.resolve(chunk, topicAt, topicEnd);
              this.session.checkRoute(route);
              this.route = route.isStale ? undefined : route;
              const mayRun = route.isForRuns && (!ports.publishing.hasHooks || this.#verdicts?.get(route.topic) === 0);
              this.#runRoute = mayRun ? this.route : undefined;
              if (!mayRun) route = undefined;
            }
            if (route !== undefined) {
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
        this.#handlePacket(type, first & 15, chunk, at, body, end);
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
      this.#isParsing = false;
      if (chunk[at] >>> 4 === PacketType.publish && this.table !== this.#tableBeforeConnect)
        ports.metrics.counts[Metric.packetsPublishError]++;
      if (error instanceof ProtocolError) this.session.fail(error);
      else this.session.failInternally(error, 'reading a packet');
      return;
    }
    this.#isParsing = false;
    this.#unitsLeft = left;
    if (this.receivedPackets !== packetsBefore) this.lastReceivedMs = ports.time.nowMs; // only packets count [MQTT-3.1.2-22]
    if (at >= length || this.isClosed) return;
    if (at < last ? left > 0 && (this.pauses & Pause.hook) === 0 : at === length - 1) {
      this.#awaitRest(chunk, at, 1);
      return;
    }
    this.#unread = detachFrom(chunk, at);
    this.#boundUnread();
  }

  #tooLarge(chunk: Buffer, body: number, size: number): ProtocolError {
    if (this.table === this.#tableBeforeConnect) this.answerVersion = peekConnectVersion(chunk, body, chunk.length);
    const option = this.isConnackSent ? 'maxPacketSize' : 'maxConnectSize, at most maxPacketSize';
    const text = `the packet has ${size} bytes, more than the limit of ${this.maxPacketSize} (option ${option})`;
    return new ProtocolError(ReasonCode.packetTooLarge, text);
  }

  /** Report to the stream that a packet was received before CONNACK. */
  packetTaken(): void {
    (this.stream as Attached).packetTaken?.();
  }

  /** Handle packets with these handlers from now on. */
  use(table: HandlerTable<S>): void {
    this.table = table;
  }

  /** A CONNECT of this protocol version is being handled; a refusal is answered in it. */
  connectReceived(version: ProtocolVersion | undefined): void {
    this.answerVersion = version;
  }

  /** Get `answerVersion` for a CONNACK that refuses the client. There is no second one [MQTT-3.2.0-2]. */
  takeAnswerVersion(): ProtocolVersion | undefined {
    const version = this.answerVersion;
    this.answerVersion = undefined;
    return version;
  }

  /** The connection belongs to this session from now on. Output waits for `admitted`. */
  attach(session: S): void {
    this.session = session;
    this.isBlocked = true;
  }

  /** The CONNECT has been accepted, and CONNACK is in the output. */
  admitted(maxPacketSize: number): void {
    this.isBlocked = false;
    this.isConnackSent = true;
    this.maxPacketSize = maxPacketSize;
    (this.stream as Attached).admitted?.();
  }

  #handlePacket(type: number, flags: number, chunk: Buffer, at: number, body: number, end: number): void {
    const { counts } = this.ports.metrics;
    this.receivedPackets++;
    counts[Metric.packetsReceived]++;
    counts[RECEIVED[type]]++;
    if (this.ports.taps.isOpen) this.ports.taps.received(this, chunk.subarray(at, end));
    checkFlags(type, flags, this.session.protocolVersion);
    this.table[type](this.session, flags, chunk, at, body, end);
  }

  /** Wait for the rest of the packet at `at`. Only received bytes take memory, whatever length the packet announces. */
  #awaitRest(chunk: Buffer, at: number, needed: number): void {
    this.#parts = [detachFrom(chunk, at)];
    this.#missingBytes = needed;
  }

  /**
   * Stop reading until `resume` is called with the same reason. `Pause.hook` also stops the parsing of received bytes; hooks may overlap,
   * and each one pauses and resumes.
   * @param why one bit of `Pause`
   */
  pause(why: number): void {
    this.pauses |= why;
    if (why === Pause.hook) this.#pendingHooks++;
    else if (!this.isClosed) this.stream.pause();
  }

  /** End a pause, and read on unless another one holds. @param why one bit of `Pause` */
  resume(why: number): void {
    if ((this.pauses & why) === 0) return;
    if (why === Pause.hook && --this.#pendingHooks > 0) return;
    this.pauses &= ~why;
    this.ports.time.read(); // the stored bytes are parsed now
    this.lastReceivedMs = this.ports.time.nowMs; // the keep alive does not run while reading is paused
    if (this.isClosed) return;
    if ((this.pauses & UNREAD) === 0 && this.#unread.length > 0 && !this.#isParsing) {
      const rest = this.#unread;
      this.#unread = NO_BYTES;
      this.#read(rest);
    }
    if (this.isClosed) return;
    if (this.#streamEnd !== undefined && (this.pauses & UNREAD) === 0) {
      this.flush();
      this.lost(this.#streamEnd.reason, this.#streamEnd.reasonCode);
      this.stream.end();
    } else if (this.#mayRead) this.stream.resume();
  }

  // ----------------------------------------------------------------------------------------------------------------- output

  /** Add a frame to the output. @param mark -1 to send the frame unchanged, else its first byte and packet id (`first << 16 | id`) */
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

  /** Add a PUBLISH to the output. @param mark see `push` */
  sendMessage(frame: Frame, mark: number): void {
    this.push(frame, mark, frame.end - frame.start);
    this.sentPackets++;
    this.sentMessages++;
    this.ports.metrics.counts[Metric.packetsSent]++;
    if (this.ports.taps.isOpen) this.ports.taps.sent(this, markedCopy(frame, mark));
  }

  /** Add adjacent QoS 0 frames to the output. */
  sendRun(run: Frame, bytes: number, count: number): void {
    this.push(run, -1, bytes);
    this.sentPackets += count;
    this.sentMessages += count;
    this.ports.metrics.counts[Metric.packetsSent] += count;
  }

  /** Forward runs of QoS 0 frames of this layout without looking at each; 0: none. */
  useFastPath(layout: 0 | 4 | 5): void {
    this.inboundFastPath = this.isClosed ? 0 : layout;
  }

  /** What the hooks have decided about the topics of the client. */
  get verdicts(): Verdicts {
    return (this.#verdicts ??= new Verdicts());
  }

  /** Ask the hooks again about all topics. */
  forgetVerdicts(): void {
    this.#verdicts = undefined;
    this.#runRoute = undefined;
  }

  /** The route of the topic that the client has just published to. */
  published(route: Route): void {
    this.route = route.isStale ? undefined : route;
  }

  /** The acknowledgements that wait for a commit. */
  queueAcks(ledger: Ledger, sender: AckSender<Connection<S>>): AckQueue<Connection<S>> {
    return (this.pendingAcks ??= new AckQueue<Connection<S>>(this, ledger, sender));
  }

  /** Apply these rate limits to what the client sends. */
  limitRates(rates: RateLimits | undefined): void {
    this.rates = rates;
  }

  /** The keep alive does not run while reading is paused. */
  keepAlive(nowMs: number): void {
    this.lastReceivedMs = nowMs;
  }

  /** A PUBLISH has been received. */
  messageReceived(): void {
    this.receivedMessages++;
  }

  /** Add an acknowledgement of four bytes to the output. */
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

  /** Add a packet other than PUBLISH to the output. @param metric its counter */
  send(packet: Buffer, metric: number): void {
    if (packet.length > 0) this.sendFrame({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, metric);
  }

  /** Add a packet that fills its buffer to the output. @param metric its counter */
  sendFrame(frame: Frame, metric: number): void {
    this.push(frame, -1, frame.end);
    this.sentPackets++;
    const { counts } = this.ports.metrics;
    counts[Metric.packetsSent]++;
    counts[metric]++;
    if (this.ports.taps.isOpen) this.ports.taps.sent(this, frame.buf);
    if (this.isBlocked && this.#outputBytes > MAX_UNREAD_ANSWERS) this.pause(Pause.answers);
  }

  /** Write the output to the stream, unless the stream has too many unsent bytes. */
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
      // Not rethrown: this may happen while another client's message is routed. The stream emits the error.
      stream.destroy(asError(error));
      return;
    }
    if (!isRoomy && stream.writableLength > ports.limits.outputHighWaterMark) this.#block();
  }

  #block(): void {
    this.isBlocked = true;
    this.#unsent = 0;
    this.checkProgress(this.ports.clock.monotonic());
    this.session.blocked();
  }

  /**
   * While blocked: record whether the stream has sent anything since the last check. Nothing is written meanwhile, so the number of unsent
   * bytes can only decrease. A stream counts a write until it has completed; a socket also knows how much of the write has been sent.
   */
  checkProgress(nowMs: number): void {
    const { writableLength, _handle } = this.stream as MaybeSocket;
    const bySocket = _handle?.writeQueueSize ?? 0;
    if (writableLength === this.#unsent && bySocket === this.#unsentBySocket) return;
    this.#unsent = writableLength;
    this.#unsentBySocket = bySocket;
    this.lastProgressMs = nowMs;
  }

  /** The stream has sent its buffered bytes: write on. */
  drained(): void {
    this.lastProgressMs = this.ports.time.readMonotonic(); // queued messages may have expired
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.flush();
    if (this.isBlocked) return;
    this.resume(Pause.answers);
    if (this.isClosed) return;
    this.session.unblocked();
  }

  // -------------------------------------------------------------------------------------------------------------------- end

  /** The connection is closing: it no longer counts for `maxConnections` of the broker and of its listener. */
  #freePlace(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.ports.connections.placeFreed();
    (this.stream as Attached).placeFreed?.();
  }

  /**
   * Send the output and end the stream. Data received after that is discarded. The stream is destroyed if the peer does not close within
   * `LINGER_MS`, and at once if the peer has been sent nothing.
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
    this.#unread = NO_BYTES;
    this.#parts = undefined;
    this.#missingBytes = 0;
    this.isBlocked = false;
    const { stream } = this;
    if (stream.destroyed) {
      this.closed();
      return;
    }
    this.flush();
    stream.end();
    stream.resume(); // a paused stream does not report that the peer has closed
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

  /** Destroy the stream. Nothing more is sent. */
  destroy(): void {
    this.#freePlace();
    this.isClosed = true;
    this.inboundFastPath = 0;
    this.#unread = NO_BYTES;
    this.#parts = undefined;
    this.#missingBytes = 0;
    if (!this.stream.destroyed) this.stream.destroy();
    this.closed(); // not every stream emits 'close'
  }

  /** The stream has closed. */
  closed(): void {
    const timer = this.#lingering;
    if (timer !== undefined) this.ports.wheel.disarm(timer as never);
    this.#lingering = undefined;
    // A connection with unread bytes still counts until the broker has parsed them or, when it stops, has discarded them.
    if (this.isClosed || this.#streamEnd === undefined) this.ports.connections.streamClosed(this);
  }

  /** The peer has ended the stream, but received packets have not been parsed yet. */
  get hasPeerEnded(): boolean {
    return this.#streamEnd !== undefined;
  }

  /** The peer has ended the stream. Unread packets are handled first: there may be a DISCONNECT among them. */
  peerEnded(): void {
    this.#freePlace();
    if ((this.pauses & UNREAD) !== 0 && this.#unread.length > 0 && !this.isClosed)
      this.#streamEnd ??= { reason: 'closed', reasonCode: undefined };
    else if (this.#streamEnd === undefined || this.isClosed) this.lost('closed');
  }

  /** The stream failed. Packets that wait for the next turn are handled first; packets that wait for a hook are discarded. */
  failed(reason: DisconnectReason, reasonCode: number | undefined): void {
    this.#freePlace();
    if ((this.pauses & UNREAD) === Pause.turn && this.#unread.length > 0 && !this.isClosed) {
      this.#streamEnd = { reason, reasonCode };
      return;
    }
    this.lost(reason, reasonCode);
    this.destroy();
  }

  /** The peer has disconnected. Without effect after `end`: the stream may still deliver its output until `LINGER_MS` are over. */
  lost(reason: DisconnectReason, reasonCode?: number): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.inboundFastPath = 0;
    this.#unread = NO_BYTES;
    this.#parts = undefined;
    this.#missingBytes = 0;
    this.#output = undefined;
    this.session.connectionLost(reason, reasonCode);
    this.destroy();
  }
}

/** The bytes from `at` on, for later turns. They are copied if the buffer that they lie in is more than twice as large. */
function detachFrom(chunk: Buffer, at: number): Buffer {
  const part = at === 0 ? chunk : chunk.subarray(at);
  return part.length * 2 < part.buffer.byteLength ? concatenate(part) : part;
}

/** Concatenate buffers without using the buffer pool of Node.js: there a few bytes keep a slab of 64 KB (from Node.js 24) in memory. */
function concatenate(...parts: readonly Buffer[]): Buffer {
  const own = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(own, at);
  return own;
}

/**
 * Append a chunk to the parts of a packet. Small parts are joined with the previous ones, as in a binary counter, because a chunk of one
 * byte takes about 200 bytes of memory.
 */
function gatherPart(parts: Buffer[], chunk: Buffer): void {
  parts.push(chunk);
  for (let last = parts.length - 1; last > 0; last--) {
    if (parts[last].length > SMALL_PART || parts[last - 1].length > parts[last].length) return;
    parts[last - 1] = concatenate(parts[last - 1], parts[last]);
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
    connection.session.failInternally(error, 'reading a chunk');
  }
}

function onDrain(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  try {
    connection.drained();
  } catch (error) {
    connection.session.failInternally(error, 'draining');
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
