// Output is written once per turn. A connection lists what it has to send; the flush copies it into one buffer.
// Adjacent frames are copied in one go and then marked; if the next connection gets the same frames, the buffer is
// reused. QoS 1 fan-out to 1,000 costs 1.2 us per delivery.

import type { ByteStream } from '../base/byte-stream.ts';
import { type Frame, outputSlab, reserve } from '../packets/message.ts';

/** Frames of at least this size are written without being copied. */
const LARGE_BYTES = 4096;
/** Maximum size for which a loop copies faster than a call into native code. */
const LOOP_BYTES = 48;

/**
 * The packets that a connection sends in one turn, in order. An entry is one of:
 *
 * - a frame with the mark -1, which is sent unchanged;
 * - a frame with the mark `first << 16 | id`, of which a copy with this first byte and packet id is sent;
 * - no frame, and a mark that is an acknowledgement of four bytes.
 */
export class Output {
  readonly frames: (Frame | undefined)[] = [];
  readonly marks: number[] = [];
  count = 0;

  /** Add an entry. */
  add(frame: Frame | undefined, mark: number): void {
    const at = this.count++;
    this.frames[at] = frame;
    this.marks[at] = mark;
  }

  /** Remove all entries. */
  clear(): void {
    const { frames, count } = this;
    for (let i = 0; i < count; i++) frames[i] = undefined;
    this.count = 0;
  }
}

/** Unused outputs. An idle connection has no output. */
const spare: Output[] = [];

/** Get an empty output. `writeOutput` returns it to the pool. */
export function takeOutput(): Output {
  return spare.pop() ?? new Output();
}

/** The last result of `gather`: the next connection often sends the same frames. */
let last = new Output();
let lastBuffer: Buffer | undefined;
let lastStart = 0;
let lastEnd = 0;

/** Release the last result of `gather`, so that its buffers do not outlive the turn. */
export function endTurn(): void {
  if (last.count === 0) return;
  last.clear();
  lastBuffer = undefined;
}

/**
 * Write an output to a stream and return it to the pool. Small frames are gathered into one buffer; large ones are not copied.
 * @param bytes size of the output
 * @returns the result of the last `stream.write`: false if the stream has too many unsent bytes
 */
export function writeOutput(output: Output, bytes: number, stream: ByteStream): boolean {
  const { frames, marks, count } = output;
  if (count > 1 || marks[0] !== -1) {
    if (bytes < LARGE_BYTES || !hasLarge(frames, count)) return stream.write(gather(output, bytes));
    const more = writePieces(frames, marks, count, stream);
    giveBack(output);
    return more;
  }
  const { buf, start, end } = frames[0] as Frame;
  giveBack(output);
  return stream.write(slice(buf, start, end));
}

/** Return an output to the pool without writing it. */
export function giveBack(output: Output): void {
  output.clear();
  if (spare.length < 256 && output.frames.length <= 4096) spare.push(output);
}

function slice(buf: Buffer, start: number, end: number): Buffer {
  return start === 0 && end === buf.length ? buf : buf.subarray(start, end);
}

function hasLarge(frames: readonly (Frame | undefined)[], count: number): boolean {
  for (let i = 0; i < count; i++) {
    const frame = frames[i];
    if (frame !== undefined && frame.end - frame.start >= LARGE_BYTES) return true;
  }
  return false;
}

/** Copy all entries into one buffer. Adjacent frames are copied at once and marked afterwards. */
function gather(output: Output, bytes: number): Buffer {
  const { frames, marks, count } = output;
  const same = isLast(frames, count);
  if (same && sameMarks(marks, count)) {
    giveBack(output);
    return (lastBuffer as Buffer).subarray(lastStart, lastEnd);
  }
  const start = reserve(bytes);
  const target = outputSlab();
  if (same) {
    copy(lastBuffer as Buffer, lastStart, lastEnd, target, start);
    markAll(frames, marks, count, target, start);
  } else {
    fill(frames, marks, count, target, start);
  }
  if (frames[0] === undefined) giveBack(output);
  else remember(output, target, start, start + bytes);
  return target.subarray(start, start + bytes);
}

function isLast(frames: readonly (Frame | undefined)[], count: number): boolean {
  if (count !== last.count) return false;
  for (let i = 0; i < count; i++) if (frames[i] !== last.frames[i]) return false;
  return true;
}

function sameMarks(marks: readonly number[], count: number): boolean {
  for (let i = 0; i < count; i++) if (marks[i] !== last.marks[i]) return false;
  return true;
}

/**
 * Store an output and its bytes for `isLast`. The caller omits outputs that begin with an acknowledgement, because they are rarely
 * repeated.
 */
function remember(output: Output, buffer: Buffer, start: number, end: number): void {
  giveBack(last);
  last = output;
  lastBuffer = buffer;
  lastStart = start;
  lastEnd = end;
}

function fill(
  frames: readonly (Frame | undefined)[],
  marks: readonly number[],
  count: number,
  target: Buffer,
  at: number
): void {
  for (let i = 0; i < count; ) {
    const frame = frames[i];
    if (frame === undefined) {
      at = writeAck(target, at, marks[i++]);
      continue;
    }
    let end = frame.end;
    let next = i + 1;
    for (; next < count; next++) {
      const following = frames[next];
      if (following === undefined || following.buf !== frame.buf || following.start !== end) break;
      end = following.end;
    }
    copy(frame.buf, frame.start, end, target, at);
    const shift = at - frame.start;
    for (; i < next; i++) mark(frames[i] as Frame, marks[i], target, shift);
    at = end + shift;
  }
}

function markAll(
  frames: readonly (Frame | undefined)[],
  marks: readonly number[],
  count: number,
  target: Buffer,
  at: number
): void {
  for (let i = 0; i < count; i++) {
    const frame = frames[i];
    if (frame === undefined) {
      at = writeAck(target, at, marks[i]);
      continue;
    }
    mark(frame, marks[i], target, at - frame.start);
    at += frame.end - frame.start;
  }
}

function mark(frame: Frame, value: number, target: Buffer, shift: number): void {
  if (value === -1) return;
  target[frame.start + shift] = value >>> 16;
  const idAt = frame.packetIdAt;
  if (idAt === 0) return;
  target[idAt + shift] = (value >>> 8) & 255;
  target[idAt + shift + 1] = value & 255;
}

function writeAck(target: Buffer, at: number, value: number): number {
  target[at] = value >>> 24;
  target[at + 1] = (value >>> 16) & 255;
  target[at + 2] = (value >>> 8) & 255;
  target[at + 3] = value & 255;
  return at + 4;
}

function copy(source: Buffer, start: number, end: number, target: Buffer, at: number): void {
  if (end - start <= LOOP_BYTES) for (let i = start; i < end; i++) target[at++] = source[i];
  else source.copy(target, at, start, end);
}

/** A copy of a frame as it is sent. @param value the mark of the frame; -1 for no change */
export function markedCopy(frame: Frame, value: number): Buffer {
  const bytes = Buffer.from(frame.buf.subarray(frame.start, frame.end));
  mark(frame, value, bytes, -frame.start);
  return bytes;
}

/** Write an output with large frames in one system call. Only the header of a large frame is copied; small frames are gathered. */
function writePieces(frames: (Frame | undefined)[], marks: number[], count: number, stream: ByteStream): boolean {
  let more = true;
  stream.cork();
  for (let i = 0; i < count; ) {
    const frame = frames[i];
    if (frame !== undefined && frame.end - frame.start >= LARGE_BYTES) {
      if (marks[i] === -1) more = stream.write(slice(frame.buf, frame.start, frame.end));
      else {
        const headEnd = frame.packetIdAt === 0 ? frame.start + 1 : frame.packetIdAt + 2;
        const at = reserve(headEnd - frame.start);
        const target = outputSlab();
        copy(frame.buf, frame.start, headEnd, target, at);
        mark(frame, marks[i], target, at - frame.start);
        stream.write(target.subarray(at, at + headEnd - frame.start));
        more = stream.write(frame.buf.subarray(headEnd, frame.end));
      }
      i++;
      continue;
    }
    let bytes = 0;
    let next = i;
    for (; next < count; next++) {
      const small = frames[next];
      const size = small === undefined ? 4 : small.end - small.start;
      if (size >= LARGE_BYTES) break;
      bytes += size;
    }
    const at = reserve(bytes);
    const target = outputSlab();
    fill(frames.slice(i, next), marks.slice(i, next), next - i, target, at);
    more = stream.write(target.subarray(at, at + bytes));
    i = next;
  }
  stream.uncork();
  return more;
}
