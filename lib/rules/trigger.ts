import type { Message } from '../packets/message.ts';
import type { Cascade } from '../packets/named-publisher.ts';
import { CatalogueEvent } from './events/event.ts';
import type { RuleEvent } from './types.ts';

/** The event for which actions run. */
export interface Trigger {
  readonly event: RuleEvent;
  /** Approximate memory that is retained with each of its outputs. */
  readonly bytes: number;
  /** The topic of its message; undefined if it is not about a message of a client or the app, or the action ran before a restart. */
  readonly topic?: string | undefined;
  /** Number of characters prepared for sending so far. */
  prepared: number;
}

/** @param count number of its outputs */
export function triggerOf(event: RuleEvent, count: number): Trigger {
  const message = messageOf(event);
  const bytes = message?.bytes ?? 0;
  // the packet, and its payload as text
  return { event, bytes: Math.ceil((2 * bytes) / count), prepared: 0, topic: message?.topic };
}

/** Allow an event to outlive the current turn without retaining the memory into which its packet was received. */
export function keep(event: RuleEvent): void {
  messageOf(event)?.detach();
}

/** The counter of the messages that an event causes. */
export function cascadeOf(event: RuleEvent): Cascade | undefined {
  return event instanceof CatalogueEvent ? event.cascade : undefined;
}

function messageOf(event: RuleEvent): Message | undefined {
  return event instanceof CatalogueEvent ? event.message : undefined;
}
