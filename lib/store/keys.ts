/**
 * What a key begins with. Keys of one kind lie together, those of one session next to each other; numbers are big-endian, so the order
 * of bytes is theirs.
 *
 * | kind | key behind it | record |
 * |---|---|---|
 * | import | | an import has begun; taken away by its last batch |
 * | format | | version of the whole, who made it |
 * | commit | commit number modulo `COMMITS_KEPT`, 16 bit | number, wall-clock time |
 * | journal | commit number, 48 bit | records of sessions' messages that are not yet under their own keys |
 * | session | session number, 48 bit | who, versions, expiry, will |
 * | subscription | session number, filter | options, identifiers, up to where it is still to get retained messages |
 * | flow | session number | what of its messages is done, in flight, awaited; what of retained messages is out |
 * | segment | session number, number of its first message, 48 bit | messages one behind the other |
 * | will | session number | the will of a session that ends with its connection |
 * | retained | topic | message, its place in the order |
 * | delayed | number, 48 bit | message, when it is due |
 * | table | name, 0, key | value of the app or of a later part, as bytes |
 * | garbage | session number | it has ended; its segments are still to be deleted |
 */
export const Kind = {
  import: 0x00,
  format: 0x01,
  commit: 0x02,
  journal: 0x03,
  session: 0x10,
  subscription: 0x11,
  flow: 0x12,
  segment: 0x13,
  will: 0x14,
  garbage: 0x15,
  retained: 0x20,
  delayed: 0x21,
  table: 0x30
} as const;

/** Keys of these kinds are at least so long. */
const LEAST_BYTES: Readonly<Record<number, number>> = {
  [Kind.commit]: 3,
  [Kind.journal]: 7,
  [Kind.session]: 7,
  [Kind.subscription]: 7,
  [Kind.flow]: 7,
  [Kind.segment]: 13,
  [Kind.will]: 7,
  [Kind.garbage]: 7,
  [Kind.delayed]: 7
};

/**
 * Version of the whole: a store of a higher one is refused. Raised with every new kind and every new form or version of a record, and written into
 * an older store before any of these: a start does not look at queued messages, nor at kinds that it does not know. `import` needed none:
 * it lies before the format record and is taken away by the end of an import, and a store that does not begin with its format is refused anyway.
 *
 * A field at the end of a record needs neither a new version nor this, where one that is missing has a meaning and a version that does not
 * know it may go on without: readers stop behind what they know, and what such a version writes again lacks the field. So it is with
 * `seq` of retained messages, `owed` of a flow and `owedBefore` of a subscription. Segments and journals are read to their end: to them
 * nothing can be appended.
 *
 * 2: packet ids that wait for PUBREL may be bits, see `parked.ts`.
 */
export const FORMAT = 2;

/** Commit records that are kept. More than LevelDB's log can hold of small batches, so that a gap in it is seen. */
export const COMMITS_KEPT = 65_536;

/** First key of a kind, and with `next` the end of its range. */
export function kindKey(kind: number): Buffer {
  return Buffer.from([kind]);
}

/** Key of a kind and a session number, and optionally a second number. */
export function numberKey(kind: number, first: number, second?: number): Buffer {
  const key = Buffer.allocUnsafe(second === undefined ? 7 : 13);
  key[0] = kind;
  key.writeUIntBE(first, 1, 6);
  if (second !== undefined) key.writeUIntBE(second, 7, 6);
  return key;
}

/** A key in words, for errors: what was kept under it. */
export function describeKey(key: Buffer): string {
  if (key.length < (LEAST_BYTES[key[0]] ?? 1)) return `key ${key.toString('hex')}`;
  const number = key.length >= 7 ? key.readUIntBE(1, 6) : 0;
  switch (key[0]) {
    case Kind.format:
      return 'the format record';
    case Kind.commit:
      return `the record of a commit (slot ${key.readUInt16BE(1)})`;
    case Kind.journal:
      return `the messages of commit ${number}`;
    case Kind.session:
      return `session ${number}`;
    case Kind.subscription:
      return `subscription ${JSON.stringify(key.toString('utf8', 7))} of session ${number}`;
    case Kind.flow:
      return `the state of messages of session ${number}`;
    case Kind.segment:
      return `queued messages of session ${number}, from number ${key.readUIntBE(7, 6)}`;
    case Kind.will:
      return `the will of session ${number}`;
    case Kind.garbage:
      return `the end of session ${number}`;
    case Kind.retained:
      return `retained message ${JSON.stringify(key.toString('utf8', 1))}`;
    case Kind.delayed:
      return `delayed message ${number}`;
    case Kind.table:
      return `table entry ${JSON.stringify(key.toString('utf8', 1).replace('\0', '/'))}`;
    default:
      return `key ${key.toString('hex', 0, 32)}`;
  }
}

/** The first key behind this one. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}
