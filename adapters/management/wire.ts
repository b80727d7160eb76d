import {
  type ClientRecord,
  dateTimeText,
  type ListenerAddress,
  type SessionRecord,
  type SubscriptionRecord
} from '../../lib/index.ts';

/** The largest Session Expiry Interval, which means that the session does not expire. */
const NEVER = 0xffff_ffff;

/** A size as the interface writes it: `512.00M`. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of [
    ['G', 2 ** 30],
    ['M', 2 ** 20],
    ['K', 2 ** 10]
  ] as const)
    if (bytes > size) return `${(bytes / size).toFixed(2)}${unit}`;
  return `${bytes}`;
}

/** The prefix of a share group. */
const SHARE_PREFIX = /^(\$share\/[^/]+|\$queue)\//;

/** A topic filter of a subscription as lists show it: `$share/g/t`, `$share/$queue/t`. @param hasPrefix false: `t` */
export function listedFilter(filter: string, hasPrefix: boolean): string {
  if (!hasPrefix) return filter.replace(SHARE_PREFIX, '');
  return filter.startsWith('$queue/') ? `$share/${filter}` : filter;
}

/** The address of a listener as the interface writes it: `127.0.0.1:1883`, or the port alone if it is bound to all addresses. */
export function addressText(address: ListenerAddress | undefined): string {
  if (address === undefined) return 'undefined';
  const { path, host = '::', port } = address;
  if (path !== undefined) return path;
  if (host === '::') return `${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

type AnyRecord = ClientRecord | SessionRecord | SubscriptionRecord;

/** How a value is written, by the name of the field in the library. Others are written as they are. */
const FORMATS: Readonly<Record<string, (value: never) => unknown>> = {
  username: (value: string | undefined) => value ?? 'undefined',
  ipAddress: (value: string | undefined) => value ?? 'undefined',
  port: (value: number | undefined) => value ?? 0,
  connectedAt: timeOrNothing,
  disconnectedAt: timeOrNothing,
  createdAt: timeOrNothing,
  sessionExpiry: (value: number) => (value === Infinity ? NEVER : value),
  // the modules that serve connections in the original products
  transport: (value: string) => (value === 'ws' || value === 'wss' ? 'emqx_ws_connection' : 'emqx_connection'),
  certificate: (value: string | undefined) => value ?? 'nossl',
  binding: (value: string | undefined) => value ?? 'undefined'
};

/** The last second that was written: the times in a list are often close together. */
let lastSecond = { wallMs: 0, text: '' };

function timeOrNothing(value: number | undefined): string | undefined {
  if (value === undefined) return undefined;
  const wallMs = value - (value % 1000);
  if (lastSecond.wallMs !== wallMs) lastSecond = { wallMs, text: dateTimeText(wallMs) };
  return lastSecond.text;
}

/** Fields whose text is kept in one piece. */
const GROUP = 8;
/** No record has it. */
const NOTHING = Symbol();

/**
 * Make a function that writes records of a kind as JSON. It keeps the text of the fields, because most fields of a record are equal to those
 * of the record before.
 * @param names the fields of the library by their names in the interface; the first one has a value in every record
 */
export function writer<R extends AnyRecord>(names: ReadonlyMap<string, keyof R>): (record: R) => string {
  const fields = [...names].map(([wire, field], at) => ({
    field,
    format: FORMATS[field as string] ?? ((value: unknown) => value),
    prefix: `${at === 0 ? '' : ','}${JSON.stringify(wire)}:`,
    value: NOTHING as unknown
  }));
  const groups = Array.from({ length: Math.ceil(fields.length / GROUP) }, (_, at) => {
    const members = fields.slice(at * GROUP, (at + 1) * GROUP);
    return { members, texts: members.map(() => ''), text: '' };
  });
  return (record) => {
    let text = '{';
    for (const group of groups) {
      const { members, texts } = group;
      let isChanged = false;
      for (let at = 0; at < members.length; at++) {
        const member = members[at];
        const value = record[member.field];
        if (value === member.value) continue;
        const json = JSON.stringify(member.format(value as never));
        member.value = value;
        texts[at] = json === undefined ? '' : member.prefix + json;
        isChanged = true;
      }
      if (isChanged) group.text = texts.join('');
      text += group.text;
    }
    return `${text}}`;
  };
}
