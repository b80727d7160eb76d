import { Cancellation } from '../base/cancellation.ts';
import { StateError } from '../base/errors.ts';
import type { Message } from '../packets/message.ts';
import type { ClientInfo } from '../records/client.ts';
import type { SubscriptionOptions } from './subscription-options.ts';

/** The pending questions about subscriptions. */
export class OpenQuestions {
  readonly #byClient = new Map<ClientInfo, Set<SubscribeQuestion>>();

  /** @internal */
  add(question: SubscribeQuestion): void {
    const known = this.#byClient.get(question.client);
    if (known === undefined) this.#byClient.set(question.client, new Set([question]));
    else known.add(question);
  }

  /** @internal */
  delete(question: SubscribeQuestion): void {
    const known = this.#byClient.get(question.client);
    if (known?.delete(question) && known.size === 0) this.#byClient.delete(question.client);
  }

  /** Cancel the questions of a client whose connection has closed. */
  closed(client: ClientInfo): void {
    const questions = this.#byClient.size === 0 ? undefined : this.#byClient.get(client);
    if (questions === undefined) return;
    this.#byClient.delete(client);
    for (const question of questions) question.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
  }
}

/** A question to hooks, and the functions that decide about it. */
export class Question extends Cancellation {
  /** The function that was asked last. If its answer is final, it is the decider; undefined if none has decided. */
  #asked: object | undefined = undefined;
  #undecidedBy: object | undefined = undefined;
  #isUndecided = false;

  get asked(): object | undefined {
    return this.#asked;
  }

  /** The last function that could not decide. */
  get undecidedBy(): object | undefined {
    return this.#undecidedBy;
  }

  /** True if a hook could not decide. */
  get isUndecided(): boolean {
    return this.#isUndecided;
  }

  /** Note which function is asked now. @param hook undefined: all have been asked, and none has decided @internal */
  asking(hook: object | undefined): void {
    this.#asked = hook;
  }

  /** Called by a hook that cannot decide: the answer is not cached. */
  undecided(): void {
    this.#isUndecided = true;
    this.#undecidedBy = this.#asked;
  }
}

/**
 * A question to an authorizePublish hook. It is not aborted when the connection closes, because the broker has received
 * the message.
 */
export class PublishQuestion extends Question {
  readonly client: ClientInfo;
  readonly message: Message;

  constructor(client: ClientInfo, message: Message) {
    super();
    this.client = client;
    this.message = message;
  }
}

/** A question to an authorizeSubscribe hook. It is aborted when the connection closes. */
export class SubscribeQuestion extends Question {
  readonly client: ClientInfo;
  readonly filter: string;
  readonly options: SubscriptionOptions;
  readonly #open: OpenQuestions;
  #giveUp: (() => void) | undefined = undefined;

  constructor(client: ClientInfo, open: OpenQuestions, filter: string, options: SubscriptionOptions) {
    super();
    this.client = client;
    this.filter = filter;
    this.options = options;
    this.#open = open;
    open.add(this);
  }

  /** Wait for the answer, which may never come. @param otherwise the result if the question is aborted first */
  wait<A>(answer: Promise<A>, otherwise: A): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#giveUp = () => resolve(otherwise);
      if (this.isAborted) this.#giveUp();
      answer.then(resolve, reject);
    });
  }

  override abort(reason: Error): void {
    super.abort(reason);
    this.#giveUp?.();
  }

  /** Note that the question is answered. */
  answered(): void {
    this.#open.delete(this);
  }
}
