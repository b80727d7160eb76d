import type { Ledger } from './ledger.ts';

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
