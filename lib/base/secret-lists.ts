// Elements of a list that is sent back with `******`, and the current elements whose secrets they keep. Elements have no
// names, and a caller may remove, insert or sort them, so a position alone would give the password of one server to
// another. An element is first found by all its values but the secrets, then by those that say where it connects to or
// what it is called. If several are possible, the caller has to send the secret.

import { HIDDEN, hideInText } from './hidden-text.ts';
import { isPlain, namedMember } from './secrets.ts';

/** The current element of a list that an element stands for. */
interface Counterpart {
  /** Undefined: there is none, or several are possible. */
  readonly present?: unknown;
  readonly isAmbiguous?: true;
}

/** Names, in lower case, whose values say where something connects to. */
const SERVERS = [
  'url',
  'server',
  'servers',
  'host',
  'hostname',
  'address',
  'addr',
  'broker',
  'brokers',
  'endpoint',
  'port'
];
/** Names of values that tell an element from others: where it connects to, or else what it is called. */
const IDENTITIES = [SERVERS, ['id', 'name', 'key', 'clientid', 'client_id', 'topic']];
/** Maximum number of pairs of elements that are compared. */
const MAX_PAIRS = 1_000_000;
/** The end of the message for an element for which several are possible. */
export const SEVERAL = `: ${HIDDEN} could stand for the secrets of several elements; send the secret itself`;
const AMBIGUOUS: Counterpart = { isAmbiguous: true };

/** Find the current element for each element of a list with `******`. */
export function counterparts(given: readonly unknown[], present: unknown): readonly Counterpart[] {
  const known: readonly unknown[] = Array.isArray(present) ? present : [];
  const isInPlace = given.length === known.length;
  if (isInPlace && given.every((one, at) => isSame(one, known[at]))) return known.map((one) => ({ present: one }));
  if (given.length * known.length > MAX_PAIRS) return given.map(() => AMBIGUOUS);
  const unused = new Set(known.keys());
  const found = new Map<number, Counterpart>();
  for (const isAlike of [isSame, hasSameIdentity])
    for (const [at, one] of given.entries()) {
      if (found.has(at)) continue;
      const places = [...unused].filter((place) => isAlike(one, known[place]));
      const [place] = places;
      if (places.length > 1 && places.some((other) => !isEqual(known[other], known[place]))) {
        // elements of which nothing says which is which
        if (isInPlace && identityOf(one) === undefined && places.includes(at)) found.set(at, { present: known[at] });
        else found.set(at, AMBIGUOUS);
      } else if (place !== undefined) {
        unused.delete(place);
        found.set(at, { present: known[place] });
      }
    }
  return given.map((one, at) => found.get(at) ?? theOnly(one, given, known));
}

/** The element of its kind, if both lists have one: it is the same, whatever has changed. */
function theOnly(one: unknown, given: readonly unknown[], known: readonly unknown[]): Counterpart {
  const kind = kindOf(one);
  const [same, others] = [known, given].map((all) => all.filter((other) => kindOf(other) === kind));
  return same.length === 1 && others.length === 1 ? { present: same[0] } : {};
}

/** The only name in an object of an object, such as the type in `{ "mqtt": { ... } }`; undefined for other values. */
function kindOf(value: unknown): string | undefined {
  const names = isPlain(value) ? Object.keys(value) : [];
  return names.length === 1 && isPlain((value as Record<string, unknown>)[names[0]]) ? names[0] : undefined;
}

/** Check whether two values are the same, but for secrets. */
function isSame(given: unknown, present: unknown): boolean {
  if (given === HIDDEN) return present !== undefined;
  if (typeof given === 'string' && given.includes(HIDDEN))
    return typeof present === 'string' && hideInText(given) === hideInText(present);
  return isEqual(given, present, isSame);
}

function isEqual(a: unknown, b: unknown, equal: (a: unknown, b: unknown) => boolean = isEqual): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((one, at) => equal(one, b[at]));
  if (!isPlain(a)) return Object.is(a, b);
  const names = Object.keys(a);
  return (
    isPlain(b) && names.length === Object.keys(b).length && names.every((name) => equal(a[name], namedMember(b, name)))
  );
}

function hasSameIdentity(given: unknown, present: unknown): boolean {
  return typeof given !== 'string' && kindOf(given) === kindOf(present) && identityOf(given) === identityOf(present);
}

/** The values that tell an object from others; undefined if there are none. */
function identityOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === HIDDEN ? undefined : hideInText(value);
  const kind = kindOf(value);
  const object = kind === undefined ? value : namedMember(value, kind);
  for (const names of IDENTITIES) {
    const all = names.map((name) => textOf(namedMember(object, name)));
    if (all.some((text) => text !== undefined)) return JSON.stringify(all);
  }
  return undefined;
}

/** A value as text without secrets; undefined if it is another object, or is hidden. */
function textOf(value: unknown): string | undefined {
  const all = Array.isArray(value) ? value : [value];
  const isText = all.every((one) => (typeof one === 'string' || typeof one === 'number') && one !== HIDDEN);
  return isText ? hideInText(all.join(' ')) : undefined;
}

/** Check whether properties name another server than the current ones, directly or by the name of a connection. */
export function isForOtherServer(given: unknown, present: unknown): boolean {
  return [...SERVERS, 'connectionselector'].some((name) => {
    const value = namedMember(given, name);
    return value !== HIDDEN && hostsOf(value) !== hostsOf(namedMember(present, name));
  });
}

/** The values of a property that names servers, of URLs only the host and the port. */
function hostsOf(value: unknown): string {
  const all = Array.isArray(value) ? value : [value];
  return all.map((one) => `${one}`.replace(/^\w[\w+.-]*:\/\/([^/?#]*@)?([^/?#]*).*$/s, '$2').toLowerCase()).join();
}
