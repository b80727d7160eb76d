/** Limits below those of MQTT. Absent or 0 means the limit of MQTT. */
export interface TopicLimits {
  /** Maximum number of levels (slashes plus one). The prefix of a shared filter does not count. */
  readonly maxLevels?: number;
  /** Maximum length in bytes of UTF-8, at most 65,535 [MQTT-4.7.3-3]. */
  readonly maxBytes?: number;
}

/** The two parts of `$share/<group>/<filter>`. `$queue/<filter>` has the group `$queue`. */
export interface SharedFilter {
  readonly group: string;
  readonly filter: string;
}

/** Maximum length of a topic name or filter in bytes of UTF-8 [MQTT-4.7.3-3]. */
export const MAX_TOPIC_BYTES = 65_535;

const NUL = 0;
const HASH = 0x23;
const DOLLAR = 0x24;
const PLUS = 0x2b;
const SLASH = 0x2f;
const SHARE = '$share/';
const QUEUE = '$queue/';
const DELAYED = '$delayed/';
/** `$share/`, the name of a group, a slash and at least one character. */
const COMPLETE_SHARE = /^\$share\/[^/+#]+\/./s;

/**
 * Check a topic name, the topic of a PUBLISH [MQTT-4.7.0-1, MQTT-4.7.3-1, -2, -3].
 *
 * @returns undefined if it is valid, otherwise an error message such as `topic name "a/+": the wildcard "+" is not allowed in topic names`
 */
export function checkTopicName(name: string, limits?: TopicLimits): string | undefined {
  const reason = findFault(name, 0, false, limits);
  return reason && describeFault('topic name', name, reason);
}

/**
 * Check a topic filter, which may be shared [MQTT-4.7.1-1, -2, MQTT-4.7.3-1, -2, -3, MQTT-4.8.2-1, -2].
 *
 * @returns undefined if it is valid, otherwise an error message such as `topic filter "a/#/b": "#" may only be the last level`
 */
export function checkTopicFilter(filter: string, limits?: TopicLimits): string | undefined {
  let start = 0;
  if (filter.charCodeAt(0) === DOLLAR) {
    const shared = parseSharedFilter(filter);
    if (typeof shared === 'string') return shared;
    if (shared !== undefined) start = filter.length - shared.filter.length;
  }
  const reason = findFault(filter, start, true, limits);
  return reason && describeFault('topic filter', filter, reason);
}

/**
 * Check that a string from a client is a well-formed topic filter [MQTT-4.7.1-1, -2, MQTT-4.7.3-1, MQTT-4.8.2-1, -2].
 *
 * The broker may still refuse a well-formed filter; see `checkTopicFilter`.
 * @param hasShares whether `$share/` denotes a shared subscription, as in MQTT 5.0; before, it has no special meaning
 * @returns undefined if it is well-formed, otherwise an error message
 */
export function filterFault(filter: string, hasShares: boolean): string | undefined {
  let start = 0;
  if (hasShares && filter.startsWith(SHARE)) {
    if (!COMPLETE_SHARE.test(filter))
      return describeFault(
        'topic filter',
        filter,
        '"$share/" must be followed by the name of a group, "/" and a filter'
      );
    start = filter.indexOf('/', SHARE.length) + 1;
  }
  const reason = findFault(filter, start, true, undefined);
  return reason && describeFault('topic filter', filter, reason);
}

/**
 * Split a shared filter into group and filter: `$share/<group>/<filter>`, or `$queue/<filter>` with the group `$queue`.
 *
 * `$queue/a` and `$share/$queue/a` are the same subscription. The filter inside is not checked further; see `checkTopicFilter`.
 * @returns undefined for a filter that is not shared; an error message if the group or the filter is missing, the group contains a wildcard
 *   [MQTT-4.8.2-1, -2], or the filter inside is also shared
 */
export function parseSharedFilter(filter: string): SharedFilter | string | undefined {
  let group = '$queue';
  let start = QUEUE.length;
  if (filter.startsWith(SHARE)) {
    const end = filter.indexOf('/', SHARE.length);
    group = end === -1 ? filter.slice(SHARE.length) : filter.slice(SHARE.length, end);
    if (group === '') return describeFault('topic filter', filter, '"$share/" must be followed by the name of a group');
    if (group.includes('+') || group.includes('#')) {
      return describeFault('topic filter', filter, 'the name of a share group may not contain "+" or "#"');
    }
    start = end === -1 ? filter.length : end + 1;
  } else if (!filter.startsWith(QUEUE)) {
    return undefined;
  }
  if (start >= filter.length)
    return describeFault('topic filter', filter, 'a shared filter needs a filter after its group');
  if (filter.startsWith(SHARE, start) || filter.startsWith(QUEUE, start)) {
    return describeFault('topic filter', filter, 'a shared filter may not contain another shared filter');
  }
  return { group, filter: filter.slice(start) };
}

/**
 * Tell whether a topic filter matches a topic name.
 *
 * Both must be valid; pass a shared filter without its prefix. A filter that begins with a wildcard does not match a name that begins with
 * `$` [MQTT-4.7.2-1]. `a/#` also matches `a`. This function does not allocate.
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
 * Tell whether the filter `allowed` matches every topic name that the filter `requested` matches.
 *
 * Intended for an authorizeSubscribe hook. `matches(allowed, requested)` would be wrong there, because it compares a filter with a topic
 * name: `matches('ann/+', 'ann/#')` is true although `ann/#` matches far more topics.
 *
 * `#` includes the level above it. Wildcards at the first level do not match names that begin with `$` [MQTT-4.7.2-1]. If `requested` is a
 * shared filter (`$share/<group>/<filter>`, `$queue/<filter>`), the filter inside it is compared; to decide by group, read the group from
 * the request. A shared `allowed` filter covers nothing. An invalid filter covers nothing and is not covered.
 *
 * Before you insert a user name or client id into `allowed`, check that it contains no `/`, `+`, `#` or `$`: the user name `+` would turn
 * `${username}/#` into `+/#`.
 */
export function covers(allowed: string, requested: string): boolean {
  if (!isFilter(allowed) || !isFilter(requested) || parseSharedFilter(allowed) !== undefined) return false;
  const outer = allowed.split('/');
  const inner = innerFilter(requested).split('/');
  // As topic names are never empty, "#" is equivalent to "+/#", and "/#" to "/+/#".
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

/** Tell whether some topic name matches both of two topic filters without share prefixes. */
export function overlaps(a: string, b: string): boolean {
  const [one, other] = [a.split('/'), b.split('/')];
  if (isWild(one[0]) ? other[0].startsWith('$') : isWild(other[0]) && one[0].startsWith('$')) return false;
  for (let i = 0; i < one.length && i < other.length; i++) {
    if (one[i] === '#' || other[i] === '#') return true;
    if (one[i] !== '+' && other[i] !== '+' && one[i] !== other[i]) return false;
  }
  if (one.length === other.length) return true;
  const [shorter, longer] = one.length < other.length ? [one, other] : [other, one];
  return longer.length === shorter.length + 1 && longer[shorter.length] === '#'; // "a/#" matches "a"
}

function isWild(level: string): boolean {
  return level === '+' || level === '#';
}

/**
 * Prefix a topic name with a mount point. In `$delayed/<seconds>/<topic>` the inner topic is prefixed.
 * @returns undefined if the result is longer than MQTT allows
 */
export function mountedName(name: string, mountpoint: string): string | undefined {
  if (mountpoint === '') return name;
  const at = name.startsWith(DELAYED) ? name.indexOf('/', DELAYED.length) + 1 : 0;
  if (at === name.length) return name; // no topic to be delayed; the caller refuses it later
  const mounted = name.slice(0, at) + mountpoint + name.slice(at);
  return mounted.length * 3 > MAX_TOPIC_BYTES && Buffer.byteLength(mounted) > MAX_TOPIC_BYTES ? undefined : mounted;
}

/** A topic filter with a mount point, which is inserted after a share prefix. */
export function mountedFilter(filter: string, mountpoint: string): string {
  if (mountpoint === '') return filter;
  const at = sharePrefixLength(filter);
  return filter.slice(0, at) + mountpoint + filter.slice(at);
}

/** A stored topic filter without its mount point, as the client knows it. */
export function unmountedFilter(filter: string, mountpoint: string): string {
  if (mountpoint === '') return filter;
  const at = sharePrefixLength(filter);
  return filter.startsWith(mountpoint, at) ? filter.slice(0, at) + filter.slice(at + mountpoint.length) : filter;
}

function sharePrefixLength(filter: string): number {
  return filter.length - innerFilter(filter).length;
}

/** A topic filter without its share prefix, `$share/group/`. */
export function innerFilter(filter: string): string {
  const shared = parseSharedFilter(filter);
  return typeof shared === 'object' ? shared.filter : filter;
}

/** Tell whether a valid topic filter contains a wildcard. */
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

/** Control characters and Unicode noncharacters. U+0000 is always malformed. */
const CONTROLS = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * Find the first character that MQTT lets a receiver refuse: U+0001 to U+001F, U+007F to U+009F, noncharacters (section 1.5.4).
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

/** Tell whether all bytes are printable ASCII, and so are well-formed UTF-8 without control characters. */
export function isPrintable(bytes: Uint8Array, start: number, end: number): boolean {
  let outside = 0;
  for (let i = start; i < end; i++) outside |= (bytes[i]! - 0x20) | (0x7e - bytes[i]!);
  return outside >= 0;
}

/**
 * Tell whether `bytes[start, end)` is a topic name: not empty, without wildcards and U+0000. This does not check that it is valid UTF-8.
 */
export function checkTopicBytes(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const c = bytes[i]!;
    // All three forbidden bytes are below "/", so one comparison suffices for most bytes.
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
  // A UTF-16 code unit takes at most three bytes, so the bytes of most strings need not be counted.
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
      if (!isFilter) return `the wildcard "${char}" is not allowed in topic names`;
      const isWhole =
        (i === start || text.charCodeAt(i - 1) === SLASH) && (i + 1 === end || text.charCodeAt(i + 1) === SLASH);
      if (!isWhole) return `"${char}" must fill a whole level`;
      if (c === HASH && i + 1 < end) return '"#" may only be the last level';
    } else if (c === NUL) {
      return 'may not contain U+0000';
    } else if ((c & 0xf800) === 0xd800) {
      // A lone surrogate cannot be encoded in UTF-8 [MQTT-1.5.4-1].
      const next = text.charCodeAt(i + 1);
      if (c >= 0xdc00 || !((next & 0xfc00) === 0xdc00)) return 'contains a lone surrogate, which UTF-8 cannot encode';
      i++;
    }
  }
  const maxLevels = limits?.maxLevels || Infinity;
  return levels > maxLevels ? `has ${levels} levels, at most ${maxLevels} are allowed` : undefined;
}

function describeFault(kind: string, text: string, reason: string): string {
  return `${kind} ${JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text)}: ${reason}`;
}

/** Up to this length a loop compares topics faster than a call into native code. */
const LOOP_BYTES = 64;

/** Tell whether `bytes` equals `buf[start, end)`. The comparison starts at the end, where topics differ most. */
export function isSameTopic(bytes: Buffer, buf: Buffer, start: number, end: number): boolean {
  const { length } = bytes;
  if (length !== end - start) return false;
  if (length > LOOP_BYTES) return bytes.compare(buf, start, end) === 0;
  for (let i = length - 1, at = end - 1; i >= 0; i--, at--) if (bytes[i] !== buf[at]) return false;
  return true;
}

/**
 * Check a name that is inserted into a topic or topic filter as one level.
 * @param isFirst the topic begins with it
 * @returns undefined if it is one, otherwise what is wrong with it: "is empty"
 */
export function faultOfLevel(name: string, isFirst: boolean): string | undefined {
  if (name === '') return 'is empty';
  if (/[/+#]/.test(name)) return 'contains "/", "+" or "#"';
  return isFirst && name.startsWith('$') ? 'begins with "$"' : undefined;
}

/**
 * Check a mount point, a prefix of topic names. A wildcard in it would match the topics of other clients.
 * @returns undefined if it is valid, otherwise an error message
 */
export function checkMountpoint(mountpoint: string): string | undefined {
  return mountpoint === '' ? undefined : checkTopicName(mountpoint)?.replace('topic name', 'mount point');
}
