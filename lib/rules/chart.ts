/** The actions and guards of the rule's state chart. `BrokerRule` implements them in `#chartActions`. */
export interface RuleActions {
  /** Guard: the rule may start. */
  isEnabled(): boolean;
  /** Begin to create the actions. Sends `started` or `failed`. */
  begin(): void;
  /** Subscribe the rule to the events of its topics. */
  attach(): void;
  /** Unsubscribe the rule from all events. */
  detach(): void;
  /** Set a timer for the next attempt to create the actions. */
  awaitRetry(): void;
  /** Cancel that timer. */
  cancelRetry(): void;
  /** Release the actions. */
  forget(): void;
}

/** The events of the rule's state chart. */
export type RuleChartEvent =
  | {
      /** The actions are to be created, also those of a running rule. */
      type: 'start';
    }
  | {
      /** The actions are created. */
      type: 'started';
    }
  | {
      /** The actions cannot be created, or can no longer be used. */
      type: 'failed';
    }
  | {
      /** The rule was disabled, or the broker stops. */
      type: 'disabled';
    }
  | {
      /** The rule was deleted. */
      type: 'dropped';
    };
