import type { SourceSetup } from '../../../lib/adapter.ts';

/** A connection whose reading can be paused. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

/** Passes messages on to a stream, and stops reading while a rule has no room. */
export class Intake {
  readonly #setup: SourceSetup;
  readonly #connections: () => Iterable<Pausable>;
  /** Data that had already been read when it was paused. */
  #waiting: { readonly payload: Buffer; readonly metadata: Readonly<Record<string, string>> }[] = [];
  #isPaused = false;
  #isClosed = false;

  /** @param connections the currently open connections */
  constructor(setup: SourceSetup, connections: () => Iterable<Pausable>) {
    this.#setup = setup;
    this.#connections = connections;
  }

  /** True if connections are to be paused. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  take(payload: Buffer, metadata: Readonly<Record<string, string>>): void {
    if (this.#isPaused) {
      this.#waiting.push({ payload, metadata });
      return;
    }
    this.#setup.bytes(payload, metadata);
    if (this.#setup.isFull) this.#pause();
  }

  /** Close the intake. Waiting data is discarded. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #pause(): void {
    this.#isPaused = true;
    for (const connection of this.#connections()) connection.pause();
    this.#setup.whenRoom(() => this.#resume());
  }

  #resume(): void {
    const waiting = this.#waiting;
    let count = 0;
    while (count < waiting.length && !this.#setup.isFull) {
      const { payload, metadata } = waiting[count++];
      this.#setup.bytes(payload, metadata);
    }
    waiting.splice(0, count);
    if (this.#isClosed) return;
    if (this.#setup.isFull) {
      this.#setup.whenRoom(() => this.#resume());
      return;
    }
    this.#isPaused = false;
    for (const connection of this.#connections()) connection.resume();
  }
}
