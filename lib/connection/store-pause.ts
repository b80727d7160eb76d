import type { Ledger } from '../store/ledger.ts';
import { UnwrittenShare } from '../store/unwritten.ts';
import type { Connection } from './connection.ts';
import { Pause } from './pause.ts';
import type { ConnectionOwner } from './ports.ts';

/**
 * Charge a publisher for the bytes that its messages have added to the next commits, and pause reading from it while they are too many.
 * @param notedBefore bytes that the ledger had noted before these messages
 */
export function pauseForStore<S extends ConnectionOwner>(
  connection: Connection<S>,
  ledger: Ledger,
  notedBefore: number
): void {
  const { unwritten } = ledger;
  const caused = unwritten.noted - notedBefore;
  if (caused === 0) return;
  const share = (connection.unwritten ??= new UnwrittenShare());
  unwritten.charge(share, caused);
  if (unwritten.isMuch && unwritten.isTooMuch(share)) pauseUntilWritten(connection, ledger, share);
}

function pauseUntilWritten<S extends ConnectionOwner>(
  connection: Connection<S>,
  ledger: Ledger,
  share: UnwrittenShare
): void {
  if ((connection.pauses & Pause.store) !== 0 || ledger.isFailed) return;
  const { unwritten } = ledger;
  connection.pause(Pause.store);
  const mustWait = () => {
    if (unwritten.isTooMuch(share) && !ledger.isFailed && !connection.isClosed) return true;
    connection.resume(Pause.store);
    return false;
  };
  ledger.wait({ commitSucceeded: mustWait, commitFailed: mustWait });
}
