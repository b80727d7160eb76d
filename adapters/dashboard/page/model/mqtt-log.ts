// The log of the WebSocket client: its last packets and notes. While it is paused, new rows are held, so that what is read does not move.

import { T } from '../texts.ts';

const W = T.websocket.words;

/** A packet as the client of the package has it, as far as the log shows it. */
export interface LoggedPacket {
  readonly cmd: string;
  readonly topic?: string;
  readonly payload?: Uint8Array;
  readonly qos?: number;
  readonly retain?: boolean;
  readonly dup?: boolean;
  readonly messageId?: number;
  readonly reasonCode?: number;
  readonly sessionPresent?: boolean | null;
  readonly granted?: readonly number[];
  readonly subscriptions?: readonly {
    readonly topic: string;
    readonly qos: number;
    readonly noLocal?: boolean;
    readonly retainAsPublished?: boolean;
    readonly retainHandling?: number;
  }[];
  readonly unsubscriptions?: readonly string[];
  readonly protocolVersion?: number;
  readonly clientId?: string;
  readonly clean?: boolean;
  readonly keepalive?: number;
  readonly username?: string;
  readonly password?: unknown;
  readonly will?: { readonly topic: string; readonly qos: number; readonly retain: boolean };
  readonly properties?: object | undefined;
}

/** A row of the log. */
export interface LogRow {
  readonly number: number;
  readonly at: number;
  /** `note`: an event of the connection that is not a packet. */
  readonly direction: 'sent' | 'received' | 'note';
  /** The name of the packet: `PUBLISH`. */
  readonly name: string;
  readonly topic: string | undefined;
  /** The rest of the packet, in words. */
  readonly text: string;
  /** The broker has refused something, or the connection was lost. */
  readonly isBad: boolean;
  /** The beginning of the payload. */
  readonly payload: Uint8Array | undefined;
  readonly payloadBytes: number;
  /** Names and values of the properties. */
  readonly properties: readonly (readonly [name: string, value: string])[];
}

/** Maximum number of rows, bytes of each payload that are kept, and characters of each text. */
export const MAX_LOG = 500;
export const MAX_KEPT_BYTES = 16_384;
export const MAX_KEPT_TEXT = 1_024;
/** Maximum number of properties of a packet that are kept. */
export const MAX_PROPERTIES = 32;

/** The log of a client. */
export interface LogState {
  /** The newest last. */
  readonly rows: readonly LogRow[];
  /** Rows that came while the log was paused. */
  readonly held: readonly LogRow[];
}

export const EMPTY_LOG: LogState = { rows: [], held: [] };

/** Add rows. @param isPaused they are held */
export function withRows(log: LogState, rows: readonly LogRow[], isPaused: boolean): LogState {
  if (rows.length === 0) return log;
  if (isPaused) return { ...log, held: [...log.held, ...rows].slice(-MAX_LOG) };
  return { ...log, rows: [...log.rows, ...rows].slice(-MAX_LOG) };
}

/** Show the rows that were held. */
export function resumedLog(log: LogState): LogState {
  return { rows: [...log.rows, ...log.held].slice(-MAX_LOG), held: [] };
}

/** The row of a packet. Passwords and authentication data are not in it. @param reasonName the words of a reason code */
export function packetRow(
  direction: 'sent' | 'received',
  packet: LoggedPacket,
  reasonName: (code: number) => string
): Omit<LogRow, 'number' | 'at'> {
  const { cmd, topic, payload, properties = {} } = packet;
  const all = Object.entries(properties).flatMap(([name, value]) => propertyTexts(name, value));
  const kept = all.slice(0, MAX_PROPERTIES).map(([name, text]) => [cut(name), cut(text)] as const);
  const codes = packet.granted ?? (packet.reasonCode === undefined ? [] : [packet.reasonCode]);
  return {
    direction,
    name: cmd.toUpperCase(),
    topic,
    text: cut(wordsOf(packet, reasonName).join(', ')),
    isBad: codes.some((code) => code >= 0x80),
    payload: payload && new Uint8Array(payload.subarray(0, MAX_KEPT_BYTES)), // `slice` of a Buffer does not copy
    payloadBytes: payload?.length ?? 0,
    properties:
      all.length > kept.length ? [...kept, [T.websocket.furtherProperties, `${all.length - kept.length}`]] : kept
  };
}

/** The beginning of a long text, copied: a slice would keep the whole text in memory. */
function cut(text: string): string {
  if (text.length <= MAX_KEPT_TEXT) return text;
  const copy = JSON.parse(JSON.stringify(text.slice(0, MAX_KEPT_TEXT))) as string;
  return copy + T.websocket.cutText(text.length - MAX_KEPT_TEXT);
}

function wordsOf(packet: LoggedPacket, reasonName: (code: number) => string): readonly string[] {
  const { cmd, messageId, reasonCode, granted } = packet;
  const id = messageId === undefined || messageId === 0 ? [] : [W.packetId(messageId)];
  if (cmd === 'connect') return connectWords(packet);
  if (cmd === 'publish')
    return [
      W.qos(packet.qos ?? 0),
      ...(packet.retain === true ? [W.retain] : []),
      ...(packet.dup === true ? [W.repeated] : []),
      ...id
    ];
  const code = reasonCode === undefined ? [] : [codeText(reasonCode, reasonName)];
  if (cmd === 'connack') return [...code, packet.sessionPresent === true ? W.resumed : W.started];
  if (cmd === 'subscribe')
    return [...(packet.subscriptions ?? []).map((one) => [one.topic, ...optionWords(one)].join(' ')), ...id];
  if (cmd === 'unsubscribe') return [...(packet.unsubscriptions ?? []), ...id];
  if (granted !== undefined)
    return [...granted.map((one) => (cmd === 'suback' && one < 3 ? W.granted(one) : codeText(one, reasonName))), ...id];
  return [...code, ...id];
}

function connectWords(packet: LoggedPacket): readonly string[] {
  const { protocolVersion = 5, clientId = '', clean, keepalive = 0, username, password, will } = packet;
  return [
    W.versions[protocolVersion as keyof typeof W.versions],
    clientId === '' ? W.noClientId : W.clientId(clientId),
    clean === true ? W.cleanStart : W.resumes,
    keepalive === 0 ? W.noKeepAlive : W.keepAlive(keepalive),
    ...(username === undefined ? [] : [W.username(username)]),
    ...(password === undefined ? [] : [W.password]),
    ...(will === undefined ? [] : [W.will(will.topic)])
  ];
}

function optionWords(one: NonNullable<LoggedPacket['subscriptions']>[number]): readonly string[] {
  return [
    W.qos(one.qos),
    ...(one.noLocal === true ? [W.noLocal] : []),
    ...(one.retainAsPublished === true ? [W.retainAsPublished] : []),
    ...(one.retainHandling ? [W.retainHandling(one.retainHandling)] : [])
  ];
}

/** A reason code in words and as a number: `not authorized (0x87)`. */
export function codeText(code: number, reasonName: (code: number) => string): string {
  return `${reasonName(code)} (0x${code.toString(16).padStart(2, '0')})`;
}

/** The name of a property as the specification writes it: `Topic Alias Maximum`. */
function propertyName(name: string): string {
  return name.replace(/^./, (letter) => letter.toUpperCase()).replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ');
}

/** The units of properties. */
const UNITS: Readonly<Record<string, string>> = {
  sessionExpiryInterval: ' s',
  messageExpiryInterval: ' s',
  willDelayInterval: ' s',
  serverKeepAlive: ' s',
  maximumPacketSize: ' B'
};

function propertyTexts(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (value === undefined) return [];
  if (name === 'userProperties')
    return (value as readonly (readonly [string, string])[]).map(([key, text]) => [`${key} =`, text]);
  if (name === 'authenticationData') return [[propertyName(name), W.bytes((value as Uint8Array).length)]];
  if (value instanceof Uint8Array) return [[propertyName(name), bytesText(value)]];
  return [[propertyName(name), Array.isArray(value) ? value.join(', ') : `${value}${UNITS[name] ?? ''}`]];
}

/** Bytes as text if they are UTF-8 without controls, otherwise in hexadecimal. */
function bytesText(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!/\p{Cc}/u.test(text)) return text;
  } catch {
    // hexadecimal
  }
  return `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** Bytes as base64, the form in which payloads are shown. */
export function base64Of(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
