import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { encodePublish } from '../../lib/packets/encode.ts';
import { detachFromPublisher, Message } from '../../lib/packets/message.ts';
import type { QoS } from '../../lib/packets/types.ts';
import { readSession, type SessionEntry, writeSessionRecord } from '../../lib/session/messages/session-record.ts';
import { Kind } from '../../lib/store/keys.ts';
import { readMessage, writeMessage } from '../../lib/store/message-record.ts';
import { Draft, RecordReader } from '../../lib/store/record.ts';
import { PersistedMessage, readSegment, writeSegments } from '../../lib/store/segment.ts';
import { bytes, qos, runs, text, topicName } from '../packets/arbitraries.ts';

const NOW = { nowMs: 1_000_000, wallMs: 1_700_000_000_000 };

/** A value, the function that writes it, and the one that reads it. */
type Part = readonly ['u8' | 'u16' | 'u32' | 'u48' | 'f64' | 'varint' | 'text' | 'bytes', number | string | Buffer];
const upTo = (max: number) =>
  fc.oneof(
    fc.constantFrom(0, 1, 127, 128, max).filter((it) => it <= max),
    fc.integer({ min: 0, max })
  );
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.tuple(fc.constant('u8' as const), upTo(255)),
  fc.tuple(fc.constant('u16' as const), upTo(65_535)),
  fc.tuple(fc.constant('u32' as const), upTo(2 ** 32 - 1)),
  fc.tuple(fc.constant('u48' as const), upTo(2 ** 48 - 1)),
  fc.tuple(fc.constant('f64' as const), fc.double({ noNaN: true })),
  fc.tuple(fc.constant('varint' as const), upTo(Number.MAX_SAFE_INTEGER)),
  fc.tuple(fc.constant('text' as const), text(40)),
  fc.tuple(
    fc.constant('bytes' as const),
    fc.oneof(
      bytes,
      upTo(400_000).map((length) => Buffer.alloc(length, 7))
    )
  )
);

describe('A record', () => {
  it('reads a record as it was written, of any size, and among others', () => {
    fc.assert(
      fc.property(fc.array(fc.array(part, { maxLength: 12 }), { minLength: 1, maxLength: 8 }), (records) => {
        const draft = new Draft();
        for (let round = 0; round < 2; round++) {
          draft.clear();
          for (const [number, parts] of records.entries()) {
            draft.key(Kind.session).u48(number).value();
            for (const [kind, value] of parts) (draft[kind] as (value: unknown) => unknown)(value);
            draft.put();
          }
          const { keys, values } = draft.batch;
          for (const [at, parts] of records.entries()) {
            assert.equal(keys[at].readUIntBE(1, 6), at);
            const reader = new RecordReader(keys[at], values[at] as Buffer);
            for (const [kind, value] of parts) assert.deepEqual(reader[kind](), value);
            assert.equal(reader.isAtEnd, true);
          }
        }
      }),
      runs('records', 100)
    );
  });

  it('refuses numbers below 0, which would be read as others', () => {
    const draft = new Draft();
    draft.key(Kind.session).u48(1).value();
    for (const value of [-1, -15, Number.NaN]) assert.throws(() => draft.varint(value), RangeError);
  });

  it('refuses a record when any byte of it, or of its key, has changed', () => {
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 6 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (parts, where, change) => {
          const draft = new Draft();
          draft.key(Kind.flow).u48(77).value();
          for (const [kind, value] of parts) (draft[kind] as (value: unknown) => unknown)(value);
          draft.put();
          const key = Buffer.from(draft.batch.keys[0]);
          const value = Buffer.from(draft.batch.values[0] as Buffer);
          const at = where % (key.length + value.length);
          if (at < key.length) key[at] ^= change;
          else value[at - key.length] ^= change;
          assert.throws(() => new RecordReader(key, value), { code: 'STORE_CORRUPT' });
          assert.throws(() => new RecordReader(draft.batch.keys[0], (draft.batch.values[0] as Buffer).subarray(0, -1)));
        }
      ),
      runs('damaged records', 300)
    );
  });
});

interface Given {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: QoS;
  readonly retain: boolean;
  readonly layout: 4 | 5;
  readonly origin: { clientId: string; username: string | undefined } | undefined;
  readonly expiry: number;
  readonly isStored: boolean;
}

const given: fc.Arbitrary<Given> = fc.record({
  topic: topicName,
  payload: fc.oneof(
    bytes,
    fc.integer({ min: 2000, max: 70_000 }).map((length) => Buffer.alloc(length, 200))
  ),
  qos,
  retain: fc.boolean(),
  layout: fc.constantFrom(4 as const, 5 as const),
  origin: fc.option(
    fc.record({
      clientId: fc.constantFrom('a', 'b', 'ü'),
      username: fc.option(fc.constantFrom('', 'u'), { nil: undefined })
    }),
    { nil: undefined }
  ),
  expiry: fc.constantFrom(-1, 0, 60, 2 ** 32 - 1),
  isStored: fc.boolean()
});

function messageOf({ topic, payload, qos, retain, layout, origin, expiry, isStored }: Given, age = 0): Message {
  const properties =
    layout === 5 ? { contentType: 'x', userProperties: [['a', 'b']] as [string, string][] } : undefined;
  const messageId = qos > 0 ? 9 : undefined;
  const packet = { cmd: 'publish', topic, payload, qos, dup: false, retain, messageId, properties } as const;
  const buf = encodePublish(packet, layout);
  const [taken, wall] = [NOW.nowMs - age, NOW.wallMs - age];
  const message = Message.of(buf, layout, topic, qos, retain, payload.length, origin, taken, wall, expiry);
  if (isStored) {
    detachFromPublisher(message);
    Message.releaseTurnFrame(message);
  }
  return message;
}

function same(one: Message, other: Message): void {
  for (const name of [
    'topic',
    'qos',
    'retain',
    'layout',
    'expiryInterval',
    'timestamp',
    'takenAtMs',
    'bytes',
    'clientId',
    'username'
  ] as const)
    assert.deepEqual(one[name], other[name], name);
  assert.ok(one.payload.equals(other.payload));
  assert.deepEqual(one.properties, other.properties);
  assert.ok(one.form(4, true).buf.length > 0);
}

describe('A message in a record', () => {
  it('reads the same message, with its age', () => {
    fc.assert(
      fc.property(given, fc.integer({ min: 0, max: 100_000 }), (one, age) => {
        const message = messageOf(one, age);
        const draft = new Draft();
        draft.key(Kind.retained).tail(one.topic).value();
        writeMessage(draft, message, undefined);
        draft.put();
        const { keys, values } = draft.batch;
        same(readMessage(new RecordReader(keys[0], values[0] as Buffer), undefined, NOW), message);
      }),
      runs('messages', 300)
    );
  });

  it('reads the same message from a segment, with number, options and order', () => {
    const kept = fc.record({
      message: given,
      gap: fc.constantFrom(1, 1, 1, 2, 300),
      ids: fc.option(fc.array(fc.constantFrom(1, 128, 268_435_455), { minLength: 1, maxLength: 3 }), { nil: undefined })
    });
    fc.assert(
      fc.property(fc.array(kept, { minLength: 1, maxLength: 40 }), (list) => {
        let seq = 0;
        const messages = list.map(({ message, gap, ids }) => {
          seq += gap;
          return new PersistedMessage(messageOf(message), message.qos, message.retain, ids, seq);
        });
        const draft = new Draft();
        writeSegments(draft, 5, messages);
        const { keys, values } = draft.batch;
        const read = keys.flatMap((key, at) => readSegment({ key, value: values[at] as Buffer }, NOW));
        assert.deepEqual(
          read.map(({ seq, qos, retain, subscriptionIds }) => [seq, qos, retain, subscriptionIds]),
          messages.map(({ seq, qos, retain, subscriptionIds }) => [seq, qos, retain, subscriptionIds])
        );
        for (const [at, { message }] of read.entries()) same(message, messages[at].message);
        const segments = new Set(messages.map(({ segment }) => segment));
        assert.equal(segments.size, keys.length);
        assert.deepEqual(
          [...segments].map((segment) => [segment?.first, segment?.unfinished]),
          keys.map((key, at) => [key.readUIntBE(7, 6), readSegment({ key, value: values[at] as Buffer }, NOW).length])
        );
      }),
      runs('segments', 100)
    );
  });
});

describe('The record of a session', () => {
  const publisher = { clientId: 'c', username: 'ann' };
  const session: SessionEntry = {
    ...{ number: 7, node: 'n', clientId: 'c', username: 'ann', isBridge: false, cleanStart: true, isSuperuser: false },
    ...{ mountpoint: '', protocolVersion: 5, keepalive: 60, sessionExpiry: 100, createdAt: 1, disconnectedAt: 2 },
    ...{ zone: 'external', transport: 'tcp', listener: 'tcp:1883', remoteAddress: '192.0.2.1' },
    userProperties: [['a', 'b']],
    will: { message: { topic: 't', payload: Buffer.from('bye'), qos: 1, retain: false }, delayMs: 5 },
    connectedAt: undefined
  };
  const written = (entry: SessionEntry): Buffer => {
    const draft = new Draft();
    writeSessionRecord(draft, Kind.session, entry, publisher, NOW);
    return Buffer.from(draft.batch.values[0] as Buffer);
  };
  const bodyOf = (value: Buffer) => value.subarray(0, -4); // without the checksum

  for (const will of [session.will, undefined]) {
    const what = will === undefined ? 'without a will' : 'with a will';
    it(`contains the time of the last connection after all that 0.2 reads, known or not, ${what}`, () => {
      const unknown = bodyOf(written({ ...session, will }));
      const known = bodyOf(written({ ...session, will, connectedAt: 3 }));
      assert.equal(known.length, unknown.length);
      assert.deepEqual(known.subarray(0, -8), unknown.subarray(0, -8));
      assert.deepEqual([unknown.readDoubleBE(unknown.length - 8), known.readDoubleBE(known.length - 8)], [0, 3]);
    });

    it(`reads the record as it was written, ${what}`, () => {
      for (const connectedAt of [undefined, 3]) {
        const draft = new Draft();
        writeSessionRecord(draft, Kind.session, { ...session, will, connectedAt }, publisher, NOW);
        const [key, value] = [draft.batch.keys[0], draft.batch.values[0] as Buffer];
        const read = readSession({ key, value }, NOW);
        assert.equal(read.connectedAt, connectedAt);
        assert.equal(read.remoteAddress, session.remoteAddress);
        assert.equal(read.will?.message.topic, will?.message.topic);
      }
    });
  }
});
