import { StateError } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import type { SubscriptionOptions } from './subscription-options.ts';

/** The questions about the rights of clients that are not answered yet, as far as their signal was read. */
export class OpenQuestions {
  readonly #byClient = new Map<ClientInfo, Set<Question>>();

  /** @internal */
  add(question: Question): void {
    const known = this.#byClient.get(question.client);
    if (known === undefined) this.#byClient.set(question.client, new Set([question]));
    else known.add(question);
  }

  /** @internal */
  delete(question: Question): void {
    const known = this.#byClient.get(question.client);
    if (known?.delete(question) && known.size === 0) this.#byClient.delete(question.client);
  }

  /** The connection of a client has closed: abort the signals of its questions. */
  closed(client: ClientInfo): void {
    const questions = this.#byClient.size === 0 ? undefined : this.#byClient.get(client);
    if (questions === undefined) return;
    this.#byClient.delete(client);
    for (const question of questions) question.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
  }
}

/** What authorize hooks are asked. Its signal is created when a hook reads it: an answer at once costs no signal. */
export class Question {
  readonly client: ClientInfo;
  readonly #open: OpenQuestions;
  #abort: AbortController | undefined = undefined;

  constructor(client: ClientInfo, open: OpenQuestions) {
    this.client = client;
    this.#open = open;
  }

  /** Aborted when the connection closes or `hookTimeout` has passed. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      this.#open.add(this);
    }
    return this.#abort.signal;
  }

  /** The signal is aborted. Does not create it. */
  get isAborted(): boolean {
    return this.#abort?.signal.aborted === true;
  }

  abort(reason: Error): void {
    this.#abort?.abort(reason);
  }

  /** The question is answered. */
  answered(): void {
    if (this.#abort !== undefined) this.#open.delete(this);
  }
}

/** What an authorizePublish hook is asked. */
export class PublishQuestion extends Question {
  readonly message: Message;

  constructor(client: ClientInfo, open: OpenQuestions, message: Message) {
    super(client, open);
    this.message = message;
  }
}

/** What an authorizeSubscribe hook is asked. */
export class SubscribeQuestion extends Question {
  readonly filter: string;
  readonly options: SubscriptionOptions;
  /** The function whose answer was final. */
  #decider: object | undefined = undefined;

  constructor(client: ClientInfo, open: OpenQuestions, filter: string, options: SubscriptionOptions) {
    super(client, open);
    this.filter = filter;
    this.options = options;
  }

  /** The function whose answer was final; undefined: none has decided, or it has failed. */
  get decider(): object | undefined {
    return this.#decider;
  }

  /** @internal */
  decidedBy(hook: object): void {
    this.#decider = hook;
  }
}
