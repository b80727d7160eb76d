import type { ActorRef } from '../base/actor.ts';

/** The running chart of a rule. */
export interface RuleRun {
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
  readonly actor: ActorRef;
  send(type: RuleChartEvent['type']): void;
}

/** The actions of the rule's state chart. `Rule` implements them. */
export interface RuleActions {
  /** Let the events of its topics reach the rule. */
  attach(): void;
  /** Let no more events reach the rule. */
  detach(): void;
  /** Set a timer for the next attempt to make the actions. */
  awaitRetry(): void;
  /** Cancel that timer. */
  cancelRetry(): void;
  /** Release the actions. */
  forget(): void;
}

/** The events of the rule's state chart. */
export type RuleChartEvent =
  /** its actions are made */
  | { type: 'attached' }
  /** its actions cannot be made, or cannot be used any more */
  | { type: 'failed' }
  /** it is disabled, or the broker stops */
  | { type: 'disabled' }
  /** it was deleted */
  | { type: 'dropped' };
