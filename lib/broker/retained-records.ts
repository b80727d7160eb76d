import type { Message } from '../packets/message.ts';
import { Kind } from '../store/keys.ts';
import type { Durable } from '../store/ledger.ts';
import { writeMessage } from '../store/message-record.ts';
import type { Draft } from '../store/record.ts';
import type { Core } from './core.ts';

/** What is retained again where a change was refused: a message, or nothing. */
interface Before {
  readonly message: Message | undefined;
}

/** Which retained messages have changed. */
export class RetainedRecords implements Durable {
  isDirty = false;
  readonly #core: Core;
  /** By topic; undefined: the last change stands, whatever becomes of the commit. */
  #topics = new Map<string, Before | undefined>();
  #writing = new Map<string, Before | undefined>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Changed, and nobody is told should that not be kept. */
  changed(topic: string): void {
    this.#topics.set(topic, undefined);
  }

  /** Changed by somebody who is told should that not be kept. @param before what was retained until now */
  changedIfKept(topic: string, before: Message | undefined): void {
    // of several such changes none stands, if their commit fails
    if (this.#topics.get(topic) === undefined) this.#topics.set(topic, { message: before });
  }

  write(draft: Draft): void {
    this.#writing = this.#topics;
    this.#topics = new Map();
    for (const topic of this.#writing.keys()) {
      const entry = this.#core.retained.get(topic);
      draft.key(Kind.retained).tail(topic);
      if (entry === undefined) draft.delete();
      else {
        writeMessage(draft.value(), entry.message, undefined);
        draft.varint(entry.seq).put();
      }
    }
  }

  kept(): void {
    this.#writing = new Map();
  }

  lost(): void {
    const changed = this.#topics;
    const lost = this.#writing;
    this.#topics = new Map();
    this.#writing = new Map();
    for (const topic of new Set([...lost.keys(), ...changed.keys()])) {
      const isSettled = changed.has(topic) && changed.get(topic) === undefined;
      const before = isSettled ? undefined : (lost.get(topic) ?? changed.get(topic));
      if (before !== undefined) this.#core.retainAgain(topic, before.message);
      this.changed(topic);
    }
  }
}
