/**
 * The first byte of a key. Keys of one kind are adjacent, and within a kind those of one session. Numbers are big-endian, so that they sort
 * by value.
 *
 * | kind | rest of the key | record |
 * |---|---|---|
 * | import | | marks an unfinished import; deleted by the last batch of the import |
 * | format | | format of the store, time of creation |
 * | commit | commit number modulo `COMMITS_KEPT`, 16 bit | number, wall-clock time |
 * | journal | commit number, 48 bit | flow and segment records that are not yet written under their own keys |
 * | session | session number, 48 bit | client, versions, expiry, will |
 * | subscription | session number, filter | options, identifiers, end of the retained messages that are still to be sent |
 * | flow | session number | messages that are done, in flight and awaited; position in the retained messages |
 * | segment | session number, number of its first message, 48 bit | consecutive messages |
 * | will | session number | the will of a session that ends with its connection |
 * | retained | topic | message, sequence number |
 * | delayed | number, 48 bit | message, time at which it is published |
 * | outbox | number, 48 bit | name of the outbox, entry |
 * | stream | number, 48 bit | id of a stream rule, a part of its last checkpoint or a row since then |
 * | table | name, 0, key | value of the application, as JSON |
 * | garbage | session number | the session has ended; its segments must be deleted |
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
  outbox: 0x22,
  stream: 0x23,
  table: 0x30
} as const;

/** Minimum length of the keys of a kind, in bytes; default 1. */
const LEAST_BYTES: Readonly<Record<number, number>> = {
  [Kind.commit]: 3,
  [Kind.journal]: 7,
  [Kind.session]: 7,
  [Kind.subscription]: 7,
  [Kind.flow]: 7,
  [Kind.segment]: 13,
  [Kind.will]: 7,
  [Kind.garbage]: 7,
  [Kind.delayed]: 7,
  [Kind.outbox]: 7,
  [Kind.stream]: 7
};

/**
 * Version of the store format. A store of a higher version is refused.
 *
 * It is increased with every new kind, and with every new form or version of a record. The new version is written to an older store before
 * anything else, because a start reads neither queued messages nor unknown kinds. The kind `import` did not need a new version: its record
 * sorts before the format record, and a store that does not begin with its format is refused anyway.
 *
 * A field can be appended to a record without a new version if a missing field has a meaning and older versions work without it. Readers
 * ignore what follows the fields that they know, and an older version drops the field when it writes the record again. Such fields are the
 * sequence number of retained messages, the pending retained messages of flows and subscriptions, the version of the definitions, and the
 * time at which a session connected. Nothing can be appended to segments and journals, because they are read to their end.
 *
 * Version 2: packet ids that wait for PUBREL may be stored as bits. Version 3: entries of outboxes. Version 4: checkpoints of stream rules.
 */
export const FORMAT = 4;

/**
 * Version of the meaning of stored definitions: rules, streams, resources and so on. The format record contains the version of the release
 * that wrote the store; 0: 0.2 or earlier. It is increased with the first change of a release after which some definitions behave
 * differently; `lib/broker/storage/upgrade/changes.ts` describes these changes.
 *
 * Version 3: 0.3.
 */
export const DEFINITIONS_VERSION = 3;

/** Number of commit records in a store. The log of LevelDB contains fewer batches, so that a gap in the log is always detected. */
export const COMMITS_KEPT = 65_536;

/** Get the first key of a kind. It is also the exclusive end of the previous kind. */
export function kindKey(kind: number): Buffer {
  return Buffer.from([kind]);
}

/** Build a key from a kind, a number and optionally a second number. */
export function numberKey(kind: number, first: number, second?: number): Buffer {
  const key = Buffer.allocUnsafe(second === undefined ? 7 : 13);
  key[0] = kind;
  key.writeUIntBE(first, 1, 6);
  if (second !== undefined) key.writeUIntBE(second, 7, 6);
  return key;
}

/** Describe the record of a key, for error messages. */
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
      return `the deletion of session ${number}`;
    case Kind.retained:
      return `retained message ${JSON.stringify(key.toString('utf8', 1))}`;
    case Kind.delayed:
      return `delayed message ${number}`;
    case Kind.outbox:
      return `entry ${number} of the outboxes`;
    case Kind.stream:
      return `record ${number} of the stream rules`;
    case Kind.table:
      return `table entry ${JSON.stringify(key.toString('utf8', 1).replace('\0', '/'))}`;
    default:
      return `key ${key.toString('hex', 0, 32)}`;
  }
}

/** Get the next key in the order of keys. */
export function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}
