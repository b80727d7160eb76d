// Payloads: the forms in which one can be shown, and the form that suits it best.

/** The forms in which a payload can be shown. */
export const FORMS = ['text', 'json', 'cbor', 'sparkplug', 'hex'] as const;
export type Form = (typeof FORMS)[number];

/** Facts about a message that tell the form of its payload. */
export interface FormHints {
  readonly topic?: string | undefined;
  /** The property of MQTT 5. */
  readonly contentType?: string | undefined;
}

/** The bytes of base64. @returns undefined if it is not valid */
export function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** The text that bytes are in UTF-8. @returns undefined if they are not valid UTF-8 */
export function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * The best form: JSON for an object or an array, text for UTF-8 without controls, otherwise the form that the content type or the topic names, and
 * hexadecimal if they name none.
 */
export function formOf(bytes: Uint8Array, { topic = '', contentType = '' }: FormHints = {}): Form {
  if (/^application\/([\w.-]+\+)?cbor\b/i.test(contentType)) return 'cbor';
  const text = utf8Of(bytes);
  if (text === undefined || /[^\P{Cc}\t\n\r]/u.test(text)) return topic.startsWith('spBv1.0/') ? 'sparkplug' : 'hex';
  return /^\s*[[{]/.test(text) && jsonText(text) !== undefined ? 'json' : 'text';
}

/** Nesting beyond which JSON is shown as it was sent. */
const MAX_DEPTH = 200;

/**
 * JSON with one value a line. Numbers stay as they were written: `1.0` and integers from 2^53 on keep their digits.
 * @returns undefined if the text is not JSON
 */
export function jsonText(text: string): string | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g)) {
    if (token === '{' || token === '[') {
      depth++;
      if (depth > MAX_DEPTH) return text;
      out += token + line();
    } else if (token === '}' || token === ']') {
      depth--;
      out = /[{[]\n *$/.test(out.slice(-2 * MAX_DEPTH - 4)) ? out.trimEnd() + token : out + line() + token;
    } else out += token === ',' ? token + line() : token === ':' ? ': ' : token;
  }
  return out;
}

const ROW = 16;

/** Bytes as lines of sixteen: the offset, the bytes in hexadecimal, and the characters that can be printed. */
export function hexText(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += ROW) {
    const row = [...bytes.subarray(at, at + ROW)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(ROW * 3 - 1)}  ${text}`);
  }
  return lines.join('\n');
}

const SHORT = 120;

/** The beginning of a payload in one line. */
export function shortText(bytes: Uint8Array): string {
  const begin = bytes.subarray(0, SHORT * 4);
  const text = utf8Of(begin) ?? utf8Of(begin.subarray(0, begin.length - 3)); // the last character may be cut
  if (text === undefined || /[^\P{Cc}\t\n\r]/u.test(text))
    return [...begin.subarray(0, SHORT / 4)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return text.replaceAll(/\s+/g, ' ').slice(0, SHORT);
}
