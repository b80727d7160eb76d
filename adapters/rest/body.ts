import { isUtf8 } from './builtins.ts';
import { Fault } from './fault.ts';

/** Collects the bytes of a body. */
export class BodyBytes {
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * @param chunk a string if the host has set an encoding
   * @throws Fault bodyTooLarge
   */
  add(chunk: Uint8Array | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.#bytes += bytes.length;
    if (this.#bytes > this.#maxBytes) throw bodyTooLarge(this.#maxBytes);
    this.#chunks.push(bytes);
  }

  /** @throws Fault notJson */
  text(): string {
    return textOf(this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks));
  }
}

/** The text of a body, without a byte order mark. @throws Fault notJson */
function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new Fault('notJson', 'the body is not UTF-8');
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString();
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * The text of a body that a parser of the host has read.
 * @returns undefined if the value is not text
 * @throws Fault bodyTooLarge, notJson
 */
export function textFromHost(value: unknown, maxBytes: number): string | undefined {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) return undefined;
  const bytes = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  if (bytes > maxBytes) throw bodyTooLarge(maxBytes);
  return typeof value === 'string' ? value : textOf(value);
}

/**
 * Refuse an unreadable body before reading it.
 * @param header returns the value of a header
 * @throws Fault bodyTooLarge, notJson
 */
export function checkHeaders(header: (name: string) => string | undefined, maxBytes: number): void {
  const coding = header('content-encoding');
  if (coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity')
    throw new Fault('notJson', `the body has the content coding "${coding}": send it without`);
  if (Number(header('content-length')) > maxBytes) throw bodyTooLarge(maxBytes);
}

/**
 * Refuse the value that a parser of the host has derived from a body that is not JSON.
 * @throws Fault notJson
 */
export function checkParsed(contentType: string | undefined): void {
  if (contentType !== undefined && /^(application\/x-www-form-urlencoded|multipart\/)/i.test(contentType))
    throw new Fault(
      'notJson',
      `the host app has read the body as ${contentType.split(';')[0]}: send "Content-Type: application/json"`
    );
}

/**
 * Refuse a body that the host has read without leaving a value.
 * @param header returns the value of a header
 * @throws Fault failed
 */
export function checkUnread(header: (name: string) => string | undefined): void {
  if (!(Number(header('content-length')) > 0) && header('transfer-encoding') === undefined) return;
  throw new Fault(
    'failed',
    'the host app has read the body: it must set its value as `request.body`, or mount this interface before it reads bodies'
  );
}

/** The fault for a body that is larger than the limit. */
export function bodyTooLarge(maxBytes: number): Fault {
  return new Fault('bodyTooLarge', `the body is larger than ${maxBytes} bytes (option maxBodyBytes)`);
}

/** The body has not arrived in time. */
export function bodyTooSlow(timeoutMs: number): Fault {
  return new Fault('bodyTooSlow', `the body was not complete after ${timeoutMs} ms (option bodyTimeout)`);
}

/** The client has disconnected before the end of the body. */
export function bodyIncomplete(): Fault {
  return new Fault('bodyIncomplete', 'the client has closed the connection before the body was complete');
}
