import { isThenable } from '../../events/hooks.ts';
import type { MessageInput } from '../../packets/message.ts';
import type { PreparedMessage, StreamMessages } from '../host.ts';
import type { Cause } from '../values/cause.ts';
import { StreamFailure } from '../values/values.ts';

/** Approximate memory of a message besides its topic and payload, in bytes. */
const OVERHEAD_BYTES = 200;

/** Messages that are published with a checkpoint. */
export interface TakenMessages {
  readonly messages: readonly (PreparedMessage | Promise<PreparedMessage>)[];
  readonly bytes: number;
}

/**
 * The messages that a rule with checkpoints publishes at this broker. None is lost when the store fails temporarily: a
 * message whose commit fails has reached no subscriber, and is published again.
 */
export class RuleMessages {
  /** If true (`qos` 2), messages wait for a checkpoint; otherwise they are published immediately. */
  readonly isHolding: boolean;
  readonly #mostBytes: number;
  readonly #failed: (error: unknown) => void;
  readonly #sending = new Set<Promise<void>>();
  #held: (PreparedMessage | Promise<PreparedMessage>)[] = [];
  #bytes = 0;
  /** Approximate memory of the messages whose commit is pending. */
  #leavingBytes = 0;

  /**
   * @param mostBytes maximum bytes of pending commits if messages do not wait for a checkpoint: the limit
   *   `checkpointBytes`
   * @param failed called if a message is refused
   */
  constructor(isHolding: boolean, mostBytes: number, failed: (error: unknown) => void) {
    this.isHolding = isHolding;
    this.#mostBytes = mostBytes;
    this.#failed = failed;
  }

  /** Approximate memory of the messages that wait for a checkpoint. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves when all published messages are committed; undefined if they already are. */
  idle(): Promise<unknown> | undefined {
    return this.#sending.size === 0 ? undefined : Promise.all(this.#sending);
  }

  add(prepared: PreparedMessage | Promise<PreparedMessage>, bytes: number): void {
    if (!this.isHolding) {
      this.#leaveNow(prepared, bytes);
      return;
    }
    if (isThenable(prepared)) prepared.then(undefined, () => undefined); // reported when the message is about to be published
    this.#held.push(prepared);
    this.#bytes += bytes;
  }

  /** Take the waiting messages. */
  take(): TakenMessages {
    const taken = { messages: this.#held, bytes: this.#bytes };
    this.#held = [];
    this.#bytes = 0;
    return taken;
  }

  /** Put back messages that could not be published, in front of the others. */
  putBack({ messages, bytes }: TakenMessages): void {
    this.#held = [...messages, ...this.#held];
    this.#bytes += bytes;
  }

  /** Publish a message with the changes of this turn. */
  publish(message: PreparedMessage): void {
    this.#track(this.#leave(message));
  }

  #leaveNow(prepared: PreparedMessage | Promise<PreparedMessage>, bytes: number): void {
    if (this.#leavingBytes + bytes > this.#mostBytes) {
      if (isThenable(prepared)) prepared.then(undefined, () => undefined);
      const text = `an output is dropped: ${this.#leavingBytes} bytes are already waiting for the store (bounds.checkpointBytes, ${this.#mostBytes})`;
      this.#failed(new StreamFailure(text));
      return;
    }
    this.#leavingBytes += bytes;
    const leaving = isThenable(prepared) ? prepared.then((message) => this.#leave(message)) : this.#leave(prepared);
    this.#track(
      leaving.finally(() => {
        this.#leavingBytes -= bytes;
      })
    );
  }

  async #leave(message: PreparedMessage): Promise<void> {
    for (;;) {
      try {
        await message.publish();
        return;
      } catch (error) {
        if ((error as { readonly code?: string }).code !== 'STORE_FAILED') throw error;
      }
    }
  }

  #track(leaving: PromiseLike<void>): void {
    const sending: Promise<void> = Promise.resolve(leaving)
      .catch((error) => this.#failed(error))
      .finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }
}

/** Publishes the messages of all rules at this broker, those of rules with checkpoints through their `RuleMessages`. */
export class AllRuleMessages implements Pick<StreamMessages, 'publish'> {
  readonly #messages: Pick<StreamMessages, 'publish' | 'prepare'>;
  readonly #byRule = new Map<string, RuleMessages>();

  constructor(messages: Pick<StreamMessages, 'publish' | 'prepare'>) {
    this.#messages = messages;
  }

  /** Route the messages of a rule through `messages` from now on. */
  set(ruleId: string, messages: RuleMessages): void {
    this.#byRule.set(ruleId, messages);
  }

  /** Publish the messages of a rule directly from now on. */
  delete(ruleId: string): void {
    this.#byRule.delete(ruleId);
  }

  publish(input: MessageInput, ruleId: string, cause?: Cause): number | Promise<number> {
    const own = this.#byRule.get(ruleId);
    if (own === undefined) return this.#messages.publish(input, ruleId, cause);
    const bytes = input.topic.length + (input.payload?.length ?? 0) + OVERHEAD_BYTES;
    own.add(this.#messages.prepare(input, ruleId, cause), bytes);
    return 0;
  }
}
