import { Kind } from '../store/keys.ts';
import type { Durable } from '../store/ledger.ts';
import { writeMessage } from '../store/message-record.ts';
import type { Draft } from '../store/record.ts';
import type { Core } from './core.ts';

/** Which retained messages have changed. */
export class RetainedRecords implements Durable {
  isDirty = false;
  readonly #core: Core;
  #topics = new Set<string>();
  #writing = new Set<string>();

  constructor(core: Core) {
    this.#core = core;
  }

  changed(topic: string): void {
    this.#topics.add(topic);
  }

  write(draft: Draft): void {
    this.#writing = this.#topics;
    this.#topics = new Set();
    for (const topic of this.#writing) {
      const message = this.#core.retained.get(topic)?.message;
      draft.key(Kind.retained).tail(topic);
      if (message === undefined) draft.delete();
      else {
        writeMessage(draft.value(), message, undefined);
        draft.put();
      }
    }
  }

  kept(): void {
    this.#writing = new Set();
  }

  lost(): void {
    for (const topic of this.#writing) this.#topics.add(topic);
  }
}
