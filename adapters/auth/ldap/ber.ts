import { BrokerError } from '../../../lib/index.ts';

/** An element of BER [X.690]: tag, length and content. */
interface Element {
  readonly tag: number;
  readonly content: Buffer;
  /** The position of the next element. */
  readonly end: number;
}

/** A response of an LDAP server [RFC 4511]. */
interface Response {
  /** Tag of the operation. */
  readonly operation: number;
  /** The message without optional parts: controls, referrals and SASL credentials. */
  readonly bytes: Buffer;
  /** Result code; undefined: the operation has none. */
  readonly result: number | undefined;
}

/** The maximum size of a message. */
export const MAX_MESSAGE_BYTES = 1_048_576;

const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const ENUMERATED = 0x0a;
const SEQUENCE = 0x30;
const SET = 0x31;
const BIND_RESPONSE = 0x61;
const SEARCH_ENTRY = 0x64;
const SEARCH_DONE = 0x65;
const SEARCH_REFERENCE = 0x73;
export const EXTENDED_RESPONSE = 0x78;

/**
 * The first complete message in some bytes.
 * @returns undefined if it is not complete.
 * @throws BrokerError LDAP_INVALID
 */
export function firstMessage(bytes: Buffer): Buffer | undefined {
  if (bytes.length > 0 && bytes[0] !== SEQUENCE) throw invalid();
  const element = elementAt(bytes, 0);
  return element && bytes.subarray(0, element.end);
}

/**
 * Read a message. Everything in it is checked, because a parser that trusts the lengths in a message may never finish.
 * @returns undefined for a reference to another server, which is not followed
 * @throws BrokerError LDAP_INVALID, LDAP_CLOSED if the server announces that it closes the connection
 */
export function readResponse(message: Buffer): Response | undefined {
  const [id, operation] = elements(contentOf(message));
  if (id?.tag !== INTEGER || operation === undefined || !isNumber(id)) throw invalid();
  const { tag, content } = operation;
  const made = (bytes: Buffer, result?: number): Response => ({
    operation: tag,
    bytes: encoded(SEQUENCE, encoded(INTEGER, id.content), bytes),
    result
  });
  switch (tag) {
    case SEARCH_REFERENCE:
      return undefined;
    case SEARCH_ENTRY:
      checkEntry(content);
      return made(encoded(tag, content));
    case BIND_RESPONSE:
    case SEARCH_DONE:
    case EXTENDED_RESPONSE: {
      const [code, name, text] = elements(content);
      const isResult = code?.tag === ENUMERATED && name?.tag === OCTET_STRING && text?.tag === OCTET_STRING;
      if (!isResult || !isNumber(code)) throw invalid();
      if (tag === EXTENDED_RESPONSE && id.content.every((byte) => byte === 0))
        throw new BrokerError('LDAP_CLOSED', `the server closes the connection: ${text.content.toString()}`);
      const parts = [code, name, text].map((part) => encoded(part.tag, part.content));
      return made(encoded(tag, ...parts), code.content.readIntBE(0, code.content.length));
    }
    default:
      throw invalid();
  }
}

/** The bytes of an element. */
export function encoded(tag: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const header = Buffer.from([tag, 0x84, 0, 0, 0, 0]);
  header.writeUInt32BE(length, 2);
  return Buffer.concat([length < 0x80 ? Buffer.from([tag, length]) : header, ...parts]);
}

function checkEntry(content: Buffer): void {
  const [name, attributes, ...more] = elements(content);
  if (name?.tag !== OCTET_STRING || attributes?.tag !== SEQUENCE || more.length > 0) throw invalid();
  for (const attribute of elements(attributes.content)) {
    const [type, values, ...others] = attribute.tag === SEQUENCE ? elements(attribute.content) : [];
    if (type?.tag !== OCTET_STRING || values?.tag !== SET || others.length > 0) throw invalid();
    if (!elements(values.content).every(({ tag }) => tag === OCTET_STRING)) throw invalid();
  }
}

function contentOf(message: Buffer): Buffer {
  return (elementAt(message, 0) as Element).content;
}

function isNumber({ content }: Element): boolean {
  return content.length >= 1 && content.length <= 4;
}

/**
 * The elements in some bytes.
 * @throws BrokerError LDAP_INVALID
 */
function elements(bytes: Buffer): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at);
    if (element === undefined) throw invalid();
    found.push(element);
    at = element.end;
  }
  return found;
}

/** @returns undefined if the element is not complete. @throws BrokerError LDAP_INVALID */
function elementAt(bytes: Buffer, at: number): Element | undefined {
  if (bytes.length - at < 2) return undefined;
  const [tag, first] = [bytes[at], bytes[at + 1]];
  const count = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || count > 4) throw invalid(); // indefinite length, or longer than any message
  const start = at + 2 + count;
  if (bytes.length < start) return undefined;
  const length = count === 0 ? first : bytes.readUIntBE(at + 2, count);
  if (length > MAX_MESSAGE_BYTES) throw invalid();
  const end = start + length;
  return bytes.length < end ? undefined : { tag, content: bytes.subarray(start, end), end };
}

function invalid(): BrokerError {
  return new BrokerError('LDAP_INVALID', 'the server has sent an invalid LDAP message');
}
