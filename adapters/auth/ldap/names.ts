import type { Template } from '../outgoing/template.ts';
import type { Ldapts } from './connection.ts';

/** The values of placeholders, before they are escaped. */
export type Values = Readonly<Record<string, string>>;

/** OpenLDAP closes the connection on a request of more than 256 KB, which a client must not be able to cause. */
const MAX_FILLED_BYTES = 65_536;

/** Check whether a filter or a distinguished name with the values of a client may be sent. */
export function isSendable(filled: string): boolean {
  return Buffer.byteLength(filled) <= MAX_FILLED_BYTES;
}

/** A filter with the values of its placeholders [RFC 4515]. */
export function filledFilter({ Filter }: Ldapts, filter: Template, values: Values): string {
  return filter.fill(escaped(values, (value) => Filter.escape(value))).toString();
}

/** A distinguished name with the values of its placeholders [RFC 4514]. */
export function filledDn({ DN }: Ldapts, dn: Template, values: Values): string {
  return dn.fill(escaped(values, (value) => dnValue(DN, value))).toString();
}

function escaped(values: Values, escapeValue: (value: string) => string): Values {
  return Object.fromEntries(Object.entries(values).map(([letter, value]) => [letter, escapeValue(value)]));
}

/** Escape trailing spaces: the library puts such a value in quotes, which are only valid around a whole value. */
function dnValue(DN: Ldapts['DN'], value: string): string {
  let [start, end] = [0, value.length];
  while (value[start] === ' ') start++;
  while (end > start && value[end - 1] === ' ') end--;
  const inner = value.slice(start, end);
  const spaces = (count: number) => '\\20'.repeat(count);
  const escapedInner = new DN().addPairRDN('x', inner).toString().slice('x='.length);
  return spaces(start) + escapedInner.replaceAll('\0', '\\00') + spaces(value.length - end);
}
