/** The actions that the state chart of the store names. `Ledger` implements them. */
export interface StoreActions {
  /** Accept changes and reads. The store is open, and its content is known. */
  accept(): void;
  /** Start a commit of the changes: all of them, or a trial if the last commit has failed. */
  write(): void;
  /** End a commit with any outcome. */
  end(): void;
  /** Report a commit to its changes and to everything that waits for it. */
  notify(): void;
  /** Report a commit of a part of the changes. Waiters for the others continue to wait. */
  notifyPart(): void;
  /** Prepare the next commit: at the end of the turn, or later if nothing waits for it. */
  rest(): void;
  /** Keep the journals as they are, because the store has no space to fold them. */
  keepJournals(): void;
  /** Refuse changes that must be persisted, and take the changes of the failed commit back. */
  refuse(): void;
  /** Report that the store has failed. */
  raise(): void;
  /** Reject everything that waits for a commit. */
  reject(): void;
  /** Make the next trial smaller if the store has refused this one unwritten. */
  shrink(): void;
  /** Open the store again after a pause. */
  reopen(): void;
  /** Accept changes that must be persisted again. */
  recover(): void;
  /** Accept no more changes and reads. */
  shut(): void;
}

/** The events of the state chart of the store. */
export type StoreEvent =
  | {
      /** The store is to be opened. */
      type: 'open';
    }
  | {
      /** The store is open, and its content is known. */
      type: 'opened';
    }
  | {
      /** The store cannot be opened, or its content cannot be used. */
      type: 'refused';
    }
  | {
      /** Changes are due to be written. */
      type: 'commit';
    }
  | {
      /** The store has committed all changes of the commit. */
      type: 'committed';
    }
  | {
      /** The store has committed a part of the changes: a trial may be smaller than the lost commit. */
      type: 'partCommitted';
    }
  | {
      /** The store has no space to fold the journals. It has written nothing. */
      type: 'foldRefused';
    }
  | {
      /** The commit has failed. */
      type: 'failed';
    }
  | {
      /** The store may be written again after a failure. */
      type: 'reopened';
    }
  | {
      /** All changes are written, or cannot be written. */
      type: 'close';
    }
  | {
      /** The store is closed. */
      type: 'closed';
    };
