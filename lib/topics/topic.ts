/** Bounds that a broker may set below what MQTT allows. Absent or 0: no bound but MQTT's own. */
export interface TopicLimits {
  /** Most levels, that is slashes plus one. The prefix of a shared filter does not count. */
  readonly maxLevels?: number;
  /** Most bytes of UTF-8; 65,535 at most [MQTT-4.7.3-3]. */
  readonly maxBytes?: number;
}

/** The two halves of `$share/<group>/<filter>`; `$queue/<filter>` has the group `$queue`. */
export interface SharedFilter {
  readonly group: string;
  readonly filter: string;
}

/** Longest topic name or filter in bytes of UTF-8: its length travels in two bytes [MQTT-4.7.3-3]. */
export const MAX_TOPIC_BYTES = 65_535;

const NUL = 0;
const HASH = 0x23;
const DOLLAR = 0x24;
const PLUS = 0x2b;
const SLASH = 0x2f;
const SHARE = '$share/';
const QUEUE = '$queue/';
const DELAYED = '$delayed/';
/** A share group with its name, and something behind it. */
const WHOLE_SHARE = /^\$share\/[^/+#]+\/./s;

/**
 * Say what is wrong with a topic name, the topic of a PUBLISH [MQTT-4.7.0-1, MQTT-4.7.3-1, -2, -3].
 *
 * @returns undefined when it is valid, else a sentence such as `topic name "a/+": "+" is a wildcard, only topic filters may have it`
 */
export function checkTopicName(name: string, limits?: TopicLimits): string | undefined {
  const reason = findFault(name, 0, false, limits);
  return reason && sentence('topic name', name, reason);
}

/**
 * Say what is wrong with a topic filter, shared ones included [MQTT-4.7.1-1, -2, MQTT-4.7.3-1, -2, -3, MQTT-4.8.2-1, -2].
 *
 * @returns undefined when it is valid, else a sentence such as `topic filter "a/#/b": "#" may only be the last level`
 */
export function checkTopicFilter(filter: string, limits?: TopicLimits): string | undefined {
  let start = 0;
  if (filter.charCodeAt(0) === DOLLAR) {
    const shared = parseSharedFilter(filter);
    if (typeof shared === 'string') return shared;
    if (shared !== undefined) start = filter.length - shared.filter.length;
  }
  const reason = findFault(filter, start, true, limits);
  return reason && sentence('topic filter', filter, reason);
}

/**
 * Say why a string that a client sends is no topic filter at all [MQTT-4.7.1-1, -2, MQTT-4.7.3-1, MQTT-4.8.2-1, -2]. A filter that passes may
 * still be one that this broker refuses, see `checkTopicFilter`.
 *
 * @param hasShares whether `$share/` has a meaning, as from MQTT 5.0 on; before, it is the beginning of a filter like any other
 * @returns undefined when it is well-formed, else a sentence
 */
export function filterFault(filter: string, hasShares: boolean): string | undefined {
  let start = 0;
  if (hasShares && filter.startsWith(SHARE)) {
    if (!WHOLE_SHARE.test(filter))
      return sentence('topic filter', filter, '"$share/" must be followed by the name of a group, "/" and a filter');
    start = filter.indexOf('/', SHARE.length) + 1;
  }
  const reason = findFault(filter, start, true, undefined);
  return reason && sentence('topic filter', filter, reason);
}

/**
 * Take a shared filter apart: `$share/<group>/<filter>`, or `$queue/<filter>` with the group `$queue`. The two spellings of that group
 * (`$queue/a` and `$share/$queue/a`) are the same subscription.
 *
 * The filter inside is not checked further, see `checkTopicFilter`.
 * @returns undefined for an ordinary filter; a sentence saying what is wrong when it has no group, no filter, a wildcard in the group
 * [MQTT-4.8.2-1, -2] or another shared filter inside
 */
export function parseSharedFilter(filter: string): SharedFilter | string | undefined {
  let group = '$queue';
  let start = QUEUE.length;
  if (filter.startsWith(SHARE)) {
    const end = filter.indexOf('/', SHARE.length);
    group = end === -1 ? filter.slice(SHARE.length) : filter.slice(SHARE.length, end);
    if (group === '') return sentence('topic filter', filter, '"$share/" must be followed by the name of a group');
    if (group.includes('+') || group.includes('#')) {
      return sentence('topic filter', filter, 'the name of a share group may not contain "+" or "#"');
    }
    start = end === -1 ? filter.length : end + 1;
  } else if (!filter.startsWith(QUEUE)) {
    return undefined;
  }
  if (start >= filter.length) return sentence('topic filter', filter, 'a shared filter needs a filter after its group');
  if (filter.startsWith(SHARE, start) || filter.startsWith(QUEUE, start)) {
    return sentence('topic filter', filter, 'a shared filter may not contain another shared filter');
  }
  return { group, filter: filter.slice(start) };
}

/**
 * Whether a topic filter reaches a topic name, without allocating. Both must be valid; the prefix of a shared filter must be taken off.
 *
 * A filter that begins with a wildcard does not match a name that begins with `$` [MQTT-4.7.2-1]. `a/#` matches `a`, too.
 */
export function matches(filter: string, name: string): boolean {
  const filterEnd = filter.length;
  const nameEnd = name.length;
  if (name.charCodeAt(0) === DOLLAR) {
    const first = filter.charCodeAt(0);
    if (first === PLUS || first === HASH) return false;
  }
  let at = 0;
  for (let i = 0; i < filterEnd; i++) {
    const c = filter.charCodeAt(i);
    if (c === HASH) return true;
    if (c === PLUS) {
      while (at < nameEnd && name.charCodeAt(at) !== SLASH) at++;
    } else if (at < nameEnd) {
      if (name.charCodeAt(at++) !== c) return false;
    } else {
      return c === SLASH && i + 2 === filterEnd && filter.charCodeAt(i + 1) === HASH;
    }
  }
  return at === nameEnd;
}

/**
 * Whether a filter that is allowed covers one that is requested: every topic name that `requested` matches, `allowed` matches, too. For an
 * authorizeSubscribe hook, where `matches(allowed, requested)` would be wrong: it compares a filter with a topic name, so
 * `matches('ann/+', 'ann/#')` is true although `ann/#` reaches much more.
 *
 * `#` includes the level above it, and wildcards at the first level do not reach names that begin with `$` [MQTT-4.7.2-1]. If `requested` is a
 * shared filter (`$share/<group>/<filter>`, `$queue/<filter>`), the filter inside it is compared; to decide by group, read the group from the
 * request. An `allowed` filter that is shared covers nothing. A filter that is not valid covers nothing and is covered by nothing.
 *
 * Before a client's own words (user name, client id) become part of `allowed`, check that they contain no `/`, `+`, `#` or `$`: a user named
 * `+` would turn `${username}/#` into `+/#`.
 */
export function covers(allowed: string, requested: string): boolean {
  if (!isFilter(allowed) || !isFilter(requested) || parseSharedFilter(allowed) !== undefined) return false;
  const shared = parseSharedFilter(requested);
  const outer = allowed.split('/');
  const inner = (typeof shared === 'object' ? shared.filter : requested).split('/');
  // there is no empty name: "+/#" reaches all that "#" does, and "/+/#" all that "/#" does
  if (inner[0] === '#') inner.unshift('+');
  else if (inner[0] === '' && inner[1] === '#') inner.splice(1, 0, '+');
  if (outer[0] === '#') outer.unshift('+');
  if (outer[0] === '+' && inner[0].startsWith('$')) return false;
  for (let i = 0; i < outer.length; i++) {
    if (outer[i] === '#') return true;
    if (i >= inner.length || inner[i] === '#') return false;
    if (outer[i] !== '+' && outer[i] !== inner[i]) return false;
  }
  return inner.length === outer.length;
}

function isFilter(filter: unknown): boolean {
  return typeof filter === 'string' && checkTopicFilter(filter) === undefined;
}

/**
 * A topic name under a mount point. Of `$delayed/<seconds>/<topic>` the inner topic is mounted.
 * @returns undefined when it becomes longer than a topic may be
 */
export function mountedName(name: string, mountpoint: string): string | undefined {
  if (mountpoint === '') return name;
  const at = name.startsWith(DELAYED) ? name.indexOf('/', DELAYED.length) + 1 : 0;
  if (at === name.length) return name; // nothing to be delayed: refused as such
  const mounted = name.slice(0, at) + mountpoint + name.slice(at);
  return mounted.length * 3 > MAX_TOPIC_BYTES && Buffer.byteLength(mounted) > MAX_TOPIC_BYTES ? undefined : mounted;
}

/** Whether a valid topic filter has a wildcard, that is, may reach more than one topic name. */
export function isWildcard(filter: string): boolean {
  // "#" can only be the last character [MQTT-4.7.1-1]
  return filter.charCodeAt(filter.length - 1) === HASH || filter.includes('+');
}

/** The number of levels of a topic name or filter: slashes plus one. */
export function levelCount(topic: string): number {
  let levels = 1;
  for (let at = topic.indexOf('/'); at !== -1; at = topic.indexOf('/', at + 1)) levels++;
  return levels;
}

/** Control characters and the code points that Unicode calls non-characters. U+0000 is malformed anyway. */
const CONTROLS = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * The first character of a string that MQTT lets a receiver refuse: U+0001 to U+001F, U+007F to U+009F, non-characters (section 1.5.4).
 *
 * @returns its code point, such as `U+0085`; undefined if there is none
 */
export function controlIn(text: string): string | undefined {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c < 0x7f) continue;
    const code = CONTROLS.exec(text)?.[0].codePointAt(0);
    return code === undefined ? undefined : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  }
  return undefined;
}

/** Whether all bytes are printable ASCII: then they are well-formed UTF-8 without control characters. */
export function isPrintable(bytes: Uint8Array, start: number, end: number): boolean {
  let outside = 0;
  for (let i = start; i < end; i++) outside |= (bytes[i]! - 0x20) | (0x7e - bytes[i]!);
  return outside >= 0;
}

/**
 * Whether the bytes from `start` to `end` may be a topic name: at least one, no wildcard, no U+0000. That they are UTF-8 is for others
 * to check.
 */
export function checkTopicBytes(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const c = bytes[i]!;
    // one comparison for the common case: all three forbidden bytes are below "/"
    if (c < SLASH && (c === PLUS || c === HASH || c === NUL)) return false;
  }
  return end > start;
}

function findFault(
  text: string,
  start: number,
  isFilter: boolean,
  limits: TopicLimits | undefined
): string | undefined {
  const end = text.length;
  if (end === start) return 'must have at least one character';
  const maxBytes = Math.min(limits?.maxBytes || MAX_TOPIC_BYTES, MAX_TOPIC_BYTES);
  // a UTF-16 unit takes at most three bytes, so most texts need no counting
  if (end * 3 > maxBytes) {
    const bytes = end > maxBytes ? end : Buffer.byteLength(text);
    if (bytes > maxBytes) return `is longer than the ${maxBytes} bytes allowed`;
  }
  let levels = 1;
  for (let i = 0; i < end; i++) {
    const c = text.charCodeAt(i);
    if (c === SLASH) {
      if (i >= start) levels++;
    } else if (c === PLUS || c === HASH) {
      const char = text[i];
      if (!isFilter) return `"${char}" is a wildcard, only topic filters may have it`;
      const isWhole =
        (i === start || text.charCodeAt(i - 1) === SLASH) && (i + 1 === end || text.charCodeAt(i + 1) === SLASH);
      if (!isWhole) return `"${char}" must fill a whole level`;
      if (c === HASH && i + 1 < end) return '"#" may only be the last level';
    } else if (c === NUL) {
      return 'may not contain U+0000';
    } else if ((c & 0xf800) === 0xd800) {
      // half a surrogate pair has no UTF-8 form [MQTT-1.5.4-1]
      const next = text.charCodeAt(i + 1);
      if (c >= 0xdc00 || !((next & 0xfc00) === 0xdc00))
        return 'contains half a surrogate pair, which UTF-8 cannot carry';
      i++;
    }
  }
  const maxLevels = limits?.maxLevels || Infinity;
  return levels > maxLevels ? `has ${levels} levels, at most ${maxLevels} are allowed` : undefined;
}

function sentence(kind: string, text: string, reason: string): string {
  return `${kind} ${JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text)}: ${reason}`;
}

/** Topics up to this long are compared faster by a loop than by a call into native code. */
const LOOP_BYTES = 64;

/** Whether a topic's bytes are those in `buf[start, end)`. From the end, where topics differ most. */
export function isSameTopic(bytes: Buffer, buf: Buffer, start: number, end: number): boolean {
  const { length } = bytes;
  if (length !== end - start) return false;
  if (length > LOOP_BYTES) return bytes.compare(buf, start, end) === 0;
  for (let i = length - 1, at = end - 1; i >= 0; i--, at--) if (bytes[i] !== buf[at]) return false;
  return true;
}

/** Say what is wrong with a mount point, the beginning of topic names: a wildcard in it would reach into the topics of others. */
export function checkMountpoint(mountpoint: string): string | undefined {
  return mountpoint === '' ? undefined : checkTopicName(mountpoint)?.replace('topic name', 'mount point');
}
