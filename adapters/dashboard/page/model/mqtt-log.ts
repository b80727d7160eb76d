// The log of the WebSocket client: its last packets and notes. While it is paused, new rows are held, so that what is read does not move.

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

/** Maximum number of rows, and bytes of each payload that are kept. */
export const MAX_LOG = 500;
export const MAX_KEPT_BYTES = 16_384;

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
  const codes = packet.granted ?? (packet.reasonCode === undefined ? [] : [packet.reasonCode]);
  return {
    direction,
    name: cmd.toUpperCase(),
    topic,
    text: wordsOf(packet, reasonName).join(', '),
    isBad: codes.some((code) => code >= 0x80),
    payload: payload?.slice(0, MAX_KEPT_BYTES),
    payloadBytes: payload?.length ?? 0,
    properties: Object.entries(properties).flatMap(([name, value]) => propertyTexts(name, value))
  };
}

function wordsOf(packet: LoggedPacket, reasonName: (code: number) => string): readonly string[] {
  const { cmd, messageId, reasonCode, granted } = packet;
  const id = messageId === undefined || messageId === 0 ? [] : [`packet id ${messageId}`];
  if (cmd === 'connect') return connectWords(packet);
  if (cmd === 'publish')
    return [
      `QoS ${packet.qos}`,
      ...(packet.retain === true ? ['retain'] : []),
      ...(packet.dup === true ? ['repeated'] : []),
      ...id
    ];
  const code = reasonCode === undefined ? [] : [codeText(reasonCode, reasonName)];
  if (cmd === 'connack') return [...code, packet.sessionPresent === true ? 'session resumed' : 'new session'];
  if (cmd === 'subscribe')
    return [...(packet.subscriptions ?? []).map((one) => [one.topic, ...optionWords(one)].join(' ')), ...id];
  if (cmd === 'unsubscribe') return [...(packet.unsubscriptions ?? []), ...id];
  if (granted !== undefined)
    return [
      ...granted.map((one) => (cmd === 'suback' && one < 3 ? `granted QoS ${one}` : codeText(one, reasonName))),
      ...id
    ];
  return [...code, ...id];
}

function connectWords(packet: LoggedPacket): readonly string[] {
  const { protocolVersion, clientId = '', clean, keepalive = 0, username, password, will } = packet;
  return [
    protocolVersion === 5 ? 'MQTT 5' : 'MQTT 3.1.1',
    clientId === '' ? 'no client id' : `client id ${clientId}`,
    clean === true ? 'new session' : 'resumes a session',
    keepalive === 0 ? 'no keep alive' : `keep alive ${keepalive} s`,
    ...(username === undefined ? [] : [`user name ${username}`]),
    ...(password === undefined ? [] : ['with a password']),
    ...(will === undefined ? [] : [`will to ${will.topic}`])
  ];
}

function optionWords(one: NonNullable<LoggedPacket['subscriptions']>[number]): readonly string[] {
  return [
    `QoS ${one.qos}`,
    ...(one.noLocal === true ? ['No Local'] : []),
    ...(one.retainAsPublished === true ? ['Retain As Published'] : []),
    ...(one.retainHandling ? [`Retain Handling ${one.retainHandling}`] : [])
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
  if (name === 'authenticationData') return [[propertyName(name), `${(value as Uint8Array).length} bytes`]];
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
