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
/** Names, in lower case, of values that name a connection or a resource, which says where something connects to. */
const OWNERS = ['connectionselector', '$resource'];
/** Names of values that tell an element from others: where it connects to, or else what it is called. */
const IDENTITIES = [SERVERS, ['id', 'name', 'key', 'clientid', 'client_id', 'topic']];
/** Maximum depth to which elements are compared. Deeper ones are refused elsewhere. */
const MAX_LEVELS = 64;
/** The end of the message for an element for which several are possible. */
export const SEVERAL = `: ${HIDDEN} could stand for the secrets of several elements; send the secret itself`;
/** The end of the message for a secret that another server, or the same one without TLS, would get. */
export const OTHER_SERVER = `: ${HIDDEN} cannot be kept for another server, or without TLS: send the secret itself, or leave it out`;
const AMBIGUOUS: Counterpart = { isAmbiguous: true };

/**
 * Find the current element for each element of a list with `******`. Elements are found by keys, each made once, so the
 * time grows with the length of the lists.
 * @param hidden an element with its secrets hidden
 */
export function counterparts(
  given: readonly unknown[],
  present: unknown,
  hidden: (element: unknown) => unknown
): readonly Counterpart[] {
  const known: readonly unknown[] = Array.isArray(present) ? present : [];
  const isInPlace = given.length === known.length;
  if (isInPlace && given.every((one, at) => isSame(one, known[at]))) return known.map((one) => ({ present: one }));
  const values = known.map((one) => keyOf(one));
  const unused = new Set(known.keys());
  const found = new Map<number, Counterpart>();
  for (const [keyOfGiven, keyOfKnown] of keysOf(hidden)) {
    const alike = grouped([...unused], (place) => keyOfKnown(known[place]));
    const several = new Set<string>();
    for (const [key, [first, ...others]] of alike)
      if (others.some((place) => values[place] !== values[first])) several.add(key);
    for (const [at, one] of given.entries()) {
      const key = found.has(at) ? undefined : keyOfGiven(one);
      if (key === undefined) continue;
      if (several.has(key)) {
        // elements of which nothing says which is which
        const isHere = isInPlace && identityOf(one) === undefined && unused.has(at) && keyOfKnown(known[at]) === key;
        found.set(at, isHere ? { present: known[at] } : AMBIGUOUS);
        continue;
      }
      const place = alike.get(key)?.pop();
      if (place === undefined) continue;
      unused.delete(place);
      found.set(at, { present: known[place] });
    }
  }
  const [ofKnown, ofGiven] = [known, given].map((all) => grouped(all, kindOf));
  return given.map((one, at) => {
    const kind = kindOf(one);
    const same = ofKnown.get(kind) ?? [];
    // the only elements of their kind are the same, whatever has changed
    const isOnly = same.length === 1 && ofGiven.get(kind)?.length === 1;
    return found.get(at) ?? (isOnly ? { present: same[0] } : {});
  });
}

type KeyOf<T> = (element: unknown) => T;

/** The keys of given and of current elements that are the same, the surest first. */
function keysOf(
  hidden: (element: unknown) => unknown
): readonly (readonly [KeyOf<string | undefined>, KeyOf<string>])[] {
  const hiddenKey = (one: unknown) => keyOf(hidden(one));
  const identityKey = (one: unknown) => JSON.stringify([kindOf(one), identityOf(one)]);
  return [
    [keyOf, keyOf],
    [(one) => (keyOf(one).includes(HIDDEN) ? hiddenKey(one) : undefined), hiddenKey],
    [(one) => (typeof one === 'string' ? undefined : identityKey(one)), identityKey],
    [(one) => (one === HIDDEN ? HIDDEN : undefined), () => HIDDEN]
  ];
}

function grouped<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

/** A string that is the same for the same values. Names have no order and no case. */
function keyOf(value: unknown, level = 0): string {
  if (level > MAX_LEVELS) return '';
  if (Array.isArray(value)) return `[${value.map((one) => keyOf(one, level + 1)).join()}]`;
  if (!isPlain(value)) return typeof value === 'string' ? JSON.stringify(value) : String(value);
  const all = Object.entries(value).map(
    ([name, one]) => `${JSON.stringify(name.toLowerCase())}:${keyOf(one, level + 1)}`
  );
  return `{${all.sort().join()}}`;
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
  if (Array.isArray(given))
    return (
      Array.isArray(present) && given.length === present.length && given.every((one, at) => isSame(one, present[at]))
    );
  if (!isPlain(given)) return Object.is(given, present);
  const names = Object.keys(given);
  return (
    isPlain(present) &&
    names.length === Object.keys(present).length &&
    names.every((name) => isSame(given[name], namedMember(present, name)))
  );
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

/**
 * Check whether properties name another server than the current ones, directly or by the name of a connection or a
 * resource, or the same one without TLS.
 * @param given with the current values in the place of `******`
 */
export function isForOtherServer(given: unknown, present: unknown): boolean {
  const isEncrypted = (owner: unknown) =>
    ['tls', 'ssl'].some((name) => ['true', 'on', '1'].includes(`${namedMember(owner, name)}`));
  if (isEncrypted(present) && !isEncrypted(given)) return true;
  return [...SERVERS, ...OWNERS].some((name) => {
    const [value, before] = [given, present].map((owner) => serversOf(namedMember(owner, name)));
    return value.length !== before.length || value.some((server, at) => isOther(server, before[at]));
  });
}

/** Check whether properties name a server. */
export function namesServer(properties: unknown): boolean {
  return SERVERS.some((name) => namedMember(properties, name) !== undefined);
}

interface Server {
  readonly scheme: string;
  readonly host: string;
}

/** The servers in a property; a string may list several. Objects are compared on their own. */
function serversOf(value: unknown): readonly Server[] {
  const all = (Array.isArray(value) ? value : [value]).filter((one) => one !== undefined && !isPlain(one));
  // readers of URLs do not agree about these characters
  if (all.some((one) => /[\\\p{Cc}]/u.test(`${one}`))) return [{ scheme: '', host: all.join() }];
  return all
    .flatMap((one) => hideInText(`${one}`).split(','))
    .map((text) => {
      const [, scheme = '', host = text] = /^(\w[\w+.-]*):\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text) ?? [];
      return { scheme: scheme.toLowerCase(), host: host.toLowerCase() };
    });
}

/** A server is another one if secrets would no longer be encrypted. */
function isOther(given: Server, present: Server): boolean {
  const [isEncrypted, wasEncrypted] = [given, present].map(({ scheme }) => /[^w]s$|^(ssl|tls)$/.test(scheme));
  const isWeaker = wasEncrypted && (!isEncrypted || present.scheme === `${given.scheme}s`);
  return given.host !== present.host || (isWeaker && given.scheme !== present.scheme);
}
