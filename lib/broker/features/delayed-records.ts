import type { DelayedMessage } from '../../store/delayed-record.ts';
import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import { writeMessage } from '../../store/message-record.ts';
import { NumberedRecords } from '../../store/numbered-records.ts';

/**
 * The records of delayed messages in the store. @param cancel removes a message whose commit has failed: its publisher is informed that it
 * was refused
 */
export function delayedRecords(
  ledger: Ledger,
  cancel: (waiting: DelayedMessage) => void
): NumberedRecords<DelayedMessage> {
  return new NumberedRecords(ledger, {
    kind: Kind.delayed,
    write(draft, { dueWallMs, topic, message }) {
      draft.f64(dueWallMs).text(topic);
      writeMessage(draft, message, undefined);
    },
    refused(items) {
      const refused = items.filter(({ message }) => message.ticket > ledger.settled);
      for (const waiting of refused) cancel(waiting);
      return refused;
    }
  });
}
