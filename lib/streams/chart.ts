/** The actions and guards of the state chart of a stream rule. `DefinedStreamRule` implements them. */
export interface StreamRuleActions {
  /** Guard: the rule has a definition that can run. */
  isValid(): boolean;
  /** Begin to start the rule. Sends `started`, `stopped` if its schedule says that it has to wait, or `failed`. */
  begin(): void;
  /** Refuse to start a rule that is not valid. Sends `failed`. */
  refuse(): void;
  /** Start the flow of rows. */
  run(): void;
  /** Close sources and sinks. */
  halt(): void;
  /** Set a timer for the next attempt, or for the next start of the schedule. */
  awaitStart(): void;
  /** Cancel that timer. */
  cancelStart(): void;
  /** Release all resources. */
  forget(): void;
}

/** The events of the state chart of a stream rule. */
export type StreamRuleEvent =
  | {
      /** The rule should run. */
      type: 'start';
    }
  | {
      /** The sources and sinks are open. */
      type: 'started';
    }
  | {
      /** The rule was stopped by a call, by its schedule or with the service. */
      type: 'stopped';
    }
  | {
      /** The rule cannot run. */
      type: 'failed';
    }
  | {
      /** The rule was dropped. */
      type: 'dropped';
    };
