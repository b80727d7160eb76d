import { type Ledger, ticketSince } from './ledger.ts';

/**
 * Run a function once, after the next successful commit, regardless of how many fail before it. Use it where a failed commit is not a
 * reason to give up, because its changes will be written again; otherwise see `Ledger.committed`.
 * @param ticket the commit that must be in the store as well; default: any commit
 */
export function afterCommit(ledger: Ledger, run: () => void, ticket = 0): void {
  ledger.wait({
    commitSucceeded: (settled) => {
      if (settled < ticket) return true;
      run();
      return false;
    },
    commitFailed: () => true
  });
}

/**
 * Make a change, and wait until it is in the store if it has to be.
 * @param ledger undefined: nothing is persisted
 * @returns the result of `change`
 * @throws the error of `change`; BrokerError STORE_FAILED
 */
export async function commitChange<T>(ledger: Ledger | undefined, change: () => T): Promise<T> {
  const promises = ledger === undefined ? 0 : ledger.promises;
  const result = change();
  await undefined; // a listener that is called during a transition of a session: the change follows it
  const ticket = ledger === undefined ? 0 : ticketSince(ledger, promises);
  if (ticket > 0) await ledger?.committed(ticket);
  return result;
}
