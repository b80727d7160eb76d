import { BoundedIterable } from '../base/collections/bounded-iterable.ts';
import type { Value } from '../sql/values.ts';
import { keep, type Trigger } from './trigger.ts';
import type { RuleOutput } from './types.ts';

/** The open iterations over outputs of rules. */
export class OutputIterations {
  readonly #all = new Map<BoundedIterable<RuleOutput>, string | undefined>();

  /** True if there is an iteration. */
  get isOpen(): boolean {
    return this.#all.size > 0;
  }

  /** @param ruleId limits the iteration to the outputs of a rule */
  iterate(ruleId: string | undefined): AsyncIterableIterator<RuleOutput> {
    const stream = new BoundedIterable<RuleOutput>(() => void this.#all.delete(stream));
    this.#all.set(stream, ruleId);
    return stream;
  }

  add(ruleId: string, output: Value, { event, bytes }: Trigger): void {
    for (const [stream, only] of this.#all) {
      if (only !== undefined && only !== ruleId) continue;
      keep(event);
      stream.push({ ruleId, output, event }, bytes);
    }
  }

  /** End iterations. @param ruleId limits this to those over the outputs of a rule */
  end(ruleId?: string): void {
    for (const [stream, only] of [...this.#all]) if (ruleId === undefined || only === ruleId) stream.end();
  }
}
