import type { SourceContext } from '../../../lib/index.ts';

/** Clients that are asked about again one by one; if there are more, all are. */
const MAX_CLIENTS = 1_000;

/**
 * Clients about whose rights a server could not decide. The broker keeps the answers that they got instead, so these are withdrawn after a
 * while, and the server is asked again.
 */
export class UndecidedClients {
  readonly #context: SourceContext;
  readonly #pauseMs: number;
  readonly #clientIds = new Set<string>();
  #timer: unknown = undefined;

  constructor(context: SourceContext, pauseMs: number) {
    this.#context = context;
    this.#pauseMs = pauseMs;
  }

  add(clientId: string): void {
    if (this.#clientIds.size <= MAX_CLIENTS) this.#clientIds.add(clientId);
    this.#timer ??= this.#context.clock.setTimeout(() => this.#askAgain(), this.#pauseMs);
  }

  close(): void {
    this.#context.clock.clearTimeout(this.#timer);
  }

  #askAgain(): void {
    const clientIds = [...this.#clientIds];
    this.#clientIds.clear();
    this.#timer = undefined;
    if (clientIds.length > MAX_CLIENTS) this.#context.invalidate();
    else for (const clientId of clientIds) this.#context.invalidate(clientId);
  }
}
