// Everything live comes over one stream of server-sent events for each tab. Its watches are set with PUT, so that a change of the view keeps the stream.
// A hidden tab closes its stream and opens a new one when it is shown: a browser has six connections to a server over HTTP/1.1, for all tabs together.
// The stream is read with `fetch` and not with `EventSource`, which does not say why a server refuses one.

/** A watch: its kind, and the parameters of the kind. */
export interface Watch {
  readonly kind: string;
  readonly [parameter: string]: unknown;
}

/** An event of a watch. */
export type WatchListener = (data: Readonly<Record<string, unknown>>, kind: string) => void;

/** The state of the stream. */
export type LiveState =
  | { readonly is: 'hidden' | 'opening' | 'open' | 'idle' }
  /** The stream is not open, for a reason; it is opened again at a time in milliseconds since 1970. */
  | { readonly is: 'lost'; readonly reason: unknown; readonly againAt: number };

/** The ports of `Live`. */
export interface LivePage {
  /** Open the stream. @returns its chunks of text; rejects with the reason if it is refused */
  open(signal: AbortSignal): Promise<AsyncIterable<string>>;
  /** Set the watches of a stream. */
  set(id: string, watches: Readonly<Record<string, Watch>>, signal: AbortSignal): Promise<void>;
  /** Called when the state changes. */
  changed(state: LiveState): void;
  now(): number;
  /** Call a function later. @returns a function that cancels it */
  later(run: () => void, ms: number): () => void;
}

/**
 * Kinds whose watches continue with other parameters, so that what stays in view keeps its counts. They keep their names, and each row of their events
 * has the parameter that it is about.
 */
const CONTINUED: ReadonlySet<string> = new Set(['topics', 'clients']);

/** Delays before a stream is opened again, in milliseconds. */
const DELAYS = [1_000, 2_000, 5_000, 10_000];

/** The stream of a tab. */
export class Live {
  readonly #page: LivePage;
  /** By their names in the stream. Most are used once: no event of a watch that has ended reaches a later one. */
  readonly #watches = new Map<string, { readonly watch: Watch; readonly listener: WatchListener }>();
  #count = 0;
  #stream: AbortController | undefined;
  #id: string | undefined;
  #isSending = false;
  #hasChanged = false;
  #isShown = true;
  #hasEnded = false;
  #attempts = 0;
  #cancel: (() => void) | undefined;

  constructor(page: LivePage) {
    this.#page = page;
  }

  /**
   * Watch something.
   * @param name the beginning of its name in the stream; different from those of other watches of a kind that continues
   * @returns a function that ends the watch
   */
  watch(name: string, watch: Watch, listener: WatchListener): () => void {
    const sentName = CONTINUED.has(watch.kind) ? name : `${name} ${++this.#count}`;
    const one = { watch, listener };
    this.#watches.set(sentName, one);
    this.#update();
    return () => {
      if (this.#watches.get(sentName) !== one) return;
      this.#watches.delete(sentName);
      this.#update();
    };
  }

  /** Open or close the stream as the tab is shown or hidden. */
  show(isShown: boolean): void {
    if (isShown === this.#isShown) return;
    this.#isShown = isShown;
    if (isShown) this.#begin();
    else {
      this.#close();
      this.#page.changed({ is: 'hidden' });
    }
  }

  /** Open a lost stream immediately: the network has returned, or a person has asked for it. */
  retry(): void {
    this.#attempts = 0;
    this.#hasEnded = false;
    if (this.#stream === undefined) this.#begin();
  }

  /** Close the stream and open no other one before `retry`: the session has ended. */
  end(): void {
    this.#hasEnded = true;
    this.#close();
    this.#page.changed({ is: 'idle' });
  }

  #update(): void {
    if (!this.#isShown || this.#hasEnded || this.#cancel !== undefined) return;
    if (this.#watches.size === 0 && this.#stream === undefined) return;
    if (this.#stream === undefined) this.#begin();
    else if (this.#id !== undefined) this.#send(this.#id, this.#stream);
  }

  #begin(): void {
    this.#close();
    if (!this.#isShown || this.#hasEnded || this.#watches.size === 0) {
      this.#page.changed({ is: 'idle' });
      return;
    }
    this.#stream = new AbortController();
    this.#page.changed({ is: 'opening' });
    void this.#read(this.#stream);
  }

  #close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#stream?.abort();
    this.#stream = undefined;
    this.#id = undefined;
    this.#isSending = false;
  }

  async #read(stream: AbortController): Promise<void> {
    let reason: unknown;
    try {
      const events = new EventReader((kind, data) => this.#take(stream, kind, data));
      for await (const chunk of await this.#page.open(stream.signal)) events.read(chunk);
    } catch (error) {
      reason = error;
    }
    this.#lose(stream, reason);
  }

  #lose(stream: AbortController, reason: unknown): void {
    if (stream !== this.#stream) return;
    this.#close();
    const delay = DELAYS[Math.min(this.#attempts++, DELAYS.length - 1)];
    this.#cancel = this.#page.later(() => this.#begin(), delay);
    this.#page.changed({ is: 'lost', reason, againAt: this.#page.now() + delay });
  }

  #take(stream: AbortController, kind: string, text: string): void {
    if (stream !== this.#stream) return;
    let data: Record<string, unknown>;
    try {
      data = JSON.parse(text);
    } catch {
      return;
    }
    if (kind === 'opened') {
      this.#id = `${data.id}`;
      this.#attempts = 0;
      this.#page.changed({ is: 'open' });
      this.#send(this.#id, stream);
    } else if (kind === 'closed') this.#lose(stream, new Error(`${data.reason}`));
    else this.#watches.get(`${data.watch}`)?.listener(data, kind);
  }

  /** Send the watches; changes meanwhile are sent afterwards, together. */
  #send(id: string, stream: AbortController): void {
    if (this.#isSending) {
      this.#hasChanged = true;
      return;
    }
    this.#isSending = true;
    void (async () => {
      try {
        do {
          await Promise.resolve(); // a view begins several watches in one turn
          this.#hasChanged = false;
          const watches = Object.fromEntries([...this.#watches].map(([name, { watch }]) => [name, watch]));
          await this.#page.set(id, watches, stream.signal);
        } while (this.#hasChanged && stream === this.#stream);
        if (stream === this.#stream) this.#isSending = false;
      } catch (error) {
        this.#lose(stream, error);
      }
    })();
  }
}

/** Reads server-sent events from chunks that may end anywhere. */
export class EventReader {
  readonly #take: (kind: string, data: string) => void;
  #rest = '';
  #kind = '';
  #data: string[] = [];

  constructor(take: (kind: string, data: string) => void) {
    this.#take = take;
  }

  read(chunk: string): void {
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() as string;
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    if (line === '') {
      if (this.#data.length > 0) this.#take(this.#kind || 'message', this.#data.join('\n'));
      this.#kind = '';
      this.#data = [];
      return;
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) as RegExpExecArray;
    if (name === 'event') this.#kind = value;
    else if (name === 'data') this.#data.push(value);
  }
}
