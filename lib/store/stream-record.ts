import { type Draft, RecordReader } from './record.ts';
import type { Entry } from './store.ts';

/** The content of a record of a stream rule: a part of its last checkpoint, or a row that has arrived since then. */
type StreamRecordKind = 'state' | 'row';

/** A record of a stream rule. */
export interface StreamRecord {
  /** Id of the rule. */
  readonly rule: string;
  readonly kind: StreamRecordKind;
  readonly body: Buffer;
}

const KINDS: readonly StreamRecordKind[] = ['state', 'row'];

/** Write the body of the record. */
export function writeStreamRecord(draft: Draft, { rule, kind, body }: StreamRecord): void {
  draft.u8(KINDS.indexOf(kind)).text(rule).bytes(body);
}

/** Read a record. @throws RecordError */
export function readStreamRecord({ key, value }: Entry): StreamRecord & { readonly number: number } {
  const reader = new RecordReader(key, value);
  const kind = KINDS[reader.u8()];
  return { number: key.readUIntBE(1, 6), kind, rule: reader.text(), body: Buffer.from(reader.bytes()) };
}
