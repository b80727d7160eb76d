import { RecordReader } from '../store/record.ts';
import type { Entry } from '../store/store.ts';
import type { OutboxRecord } from './outboxes.ts';

/** Read the record of an entry of an outbox. @throws RecordError */
export function readOutboxRecord({ key, value }: Entry): OutboxRecord {
  const reader = new RecordReader(key, value);
  const outbox = reader.text();
  const id = reader.text();
  const entryKey = reader.text();
  const addedAt = reader.f64();
  const content = reader.u8() === 1 ? reader.text() : Buffer.from(reader.bytes());
  return { number: key.readUIntBE(1, 6), outbox, entry: { id, key: entryKey, content, addedAt } };
}
