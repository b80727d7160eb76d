import { BrokerError, type SourceContext } from '../../../lib/index.ts';
import { CircuitBreaker } from '../outgoing/circuit-breaker.ts';
import { withDeadline } from '../outgoing/deadline.ts';
import { type HttpAnswer, type HttpCall, HttpClient } from '../outgoing/http-client.ts';
import type { Slots } from '../outgoing/slots.ts';
import type { HttpSettings } from './options.ts';
import type { RequestTemplate } from './request-template.ts';

/** What a server has decided. */
export interface Decision {
  readonly kind: 'allow' | 'deny' | 'ignore' | 'failed';
  readonly status: number;
}

const FAILED: Decision = { kind: 'failed', status: 0 };
const MAX_BODY_BYTES = 16 * 1024;
/** Failures are reported at most once in this time. */
const REPORT_PAUSE_MS = 1_000;
/**
 * Status codes that say that the server does not work. 500 is not among them: a client may be able to cause it with an unusual name, and must
 * not be able to lock the others out.
 */
const DOWN = [502, 503, 504];

/** Asks a server one kind of question. */
export class Endpoint {
  readonly template: RequestTemplate;
  readonly #settings: HttpSettings;
  readonly #context: SourceContext;
  readonly #slots: Slots;
  readonly #client: HttpClient;
  readonly #breaker: CircuitBreaker;
  readonly #name: string;
  #reportedMs = -Infinity;
  #isClosed = false;

  constructor(template: RequestTemplate, settings: HttpSettings, context: SourceContext, slots: Slots) {
    const { maxConcurrent, breaker } = settings;
    this.template = template;
    this.#settings = settings;
    this.#context = context;
    this.#slots = slots;
    this.#client = new HttpClient(template.url, settings, { maxSockets: maxConcurrent, maxBodyBytes: MAX_BODY_BYTES });
    this.#breaker = new CircuitBreaker(context.clock, breaker.failures, breaker.pauseMs);
    this.#name = template.url.origin + template.url.pathname;
  }

  /** Send a request and read the decision. Failures are reported, and nothing is thrown. */
  async ask(call: HttpCall, signal: AbortSignal): Promise<Decision> {
    if (!this.#breaker.begin()) return FAILED;
    try {
      const { timeoutMs } = this.#settings;
      const answer = await withDeadline(this.#context.clock, timeoutMs, this.#name, signal, (ending) =>
        this.#slots.run(ending, () => this.#client.send(call, ending))
      );
      return this.#read(answer);
    } catch (error) {
      const wasOpen = this.#breaker.isOpen;
      const isOwn = signal.aborted || (error as BrokerError).code === 'SOURCE_BUSY'; // not the fault of the server
      if (isOwn) this.#breaker.abandoned();
      else this.#breaker.failed();
      if (!signal.aborted && !this.#isClosed) this.#report(error, this.#breaker.isOpen && !wasOpen);
      return FAILED;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }

  #read({ status, body }: HttpAnswer): Decision {
    if (DOWN.includes(status)) throw new BrokerError('HTTP_FAILED', `${this.#name} answered with status ${status}`);
    this.#breaker.succeeded();
    if (status === 200 || status === 204)
      return { kind: body.toString().trim() === 'ignore' ? 'ignore' : 'allow', status };
    if (status >= 400 && status < 500) return { kind: 'deny', status };
    this.#report(new BrokerError('HTTP_FAILED', `${this.#name} answered with status ${status}, which decides nothing`));
    return FAILED;
  }

  /** @param hasOpened the server will not be asked for some time, because of this error */
  #report(error: unknown, hasOpened = false): void {
    const nowMs = this.#context.clock.monotonic();
    if (nowMs - this.#reportedMs < REPORT_PAUSE_MS && !hasOpened) return;
    this.#reportedMs = nowMs;
    const { name, breaker } = this.#settings;
    const pause = hasOpened ? ` (it will not be asked for ${breaker.pauseMs} ms)` : '';
    this.#context.failed(error, `asking the server of the source ${name}${pause}`);
  }
}
