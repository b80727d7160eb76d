import { BrokerError } from '../../base/errors.ts';
import { inStore } from '../../store/commits.ts';
import { Kind, numberKey } from '../../store/keys.ts';
import { RecordError } from '../../store/record.ts';
import { type ReadSegment, segmentFirst } from '../../store/segment.ts';
import type { Entry } from '../../store/store.ts';
import type { SessionLog } from './log.ts';

/** Reads the segments of a session, and discards damaged ones. */
export class SegmentReader {
  readonly #log: SessionLog;

  constructor(log: SessionLog) {
    this.#log = log;
  }

  /** Get the records of segments between two message numbers. @throws the error of the store */
  records(from: number, to: number, limit: number): Promise<Entry[]> {
    const { ledger, number } = this.#log;
    return ledger.read(numberKey(Kind.segment, number, from), numberKey(Kind.segment, number, to), limit);
  }

  /**
   * Read the messages of a record that are not done.
   * @returns an error if the record is damaged: then call `discard`
   * @throws BrokerError STORE_TOO_NEW
   */
  read(entry: Entry): ReadSegment | BrokerError {
    const { messages, session, ledger } = this.#log;
    try {
      return messages.read(entry, session.ports.time);
    } catch (error) {
      const isKnown = error instanceof RecordError;
      const bad = isKnown ? error : new RecordError('STORE_CORRUPT', entry.key, (error as Error).message);
      const fault = inStore(ledger.store, bad);
      if (fault.code === 'STORE_TOO_NEW') throw fault;
      return fault;
    }
  }

  /** Delete a damaged record, count its messages as lost, and report the error. @param unwritten as `StoredMessages.unwritten` before the read */
  async discard(entry: Entry, unwritten: number, fault: BrokerError): Promise<void> {
    const { messages, queue, session } = this.#log;
    const from = segmentFirst(entry.key);
    const [next] = await this.records(from + 1, unwritten, 1);
    if (messages.isEnded) return;
    const lost = messages.lose(from, next === undefined ? unwritten : segmentFirst(next.key));
    queue.resized();
    this.#log.flowTouched();
    if (lost === 0) return; // all of its messages were done, or the loss was reported before
    const { ports, client } = session;
    ports.announcer.failed(lossOf(fault, lost, client.clientId), 'reading queued messages from the store', client);
  }
}

/** The error for a damaged record. @param lost number of lost messages */
function lossOf({ code, message }: BrokerError, lost: number, clientId: string): BrokerError {
  const lostMessages = `${lost} accepted messages for client ${JSON.stringify(clientId)} are lost with it`;
  const remedy = 'Run checkStore (embermq store check) to find further damage, or restore a backup.';
  return new BrokerError(code, `${message}. ${lostMessages}. ${remedy}`);
}
