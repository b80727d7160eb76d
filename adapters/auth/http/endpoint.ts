import type { SourceContext } from '../../../lib/adapter.ts';
import { BrokerError } from '../../../lib/index.ts';
import { type HttpAnswer, type HttpCall, HttpClient } from '../../outgoing/index.ts';
import { Guard } from '../outgoing/guard.ts';
import type { Slots } from '../outgoing/slots.ts';
import type { HttpSettings } from './options.ts';
import type { RequestTemplate } from './request-template.ts';

/** The decision of a server. */
export interface Decision {
  readonly kind: 'allow' | 'deny' | 'ignore' | 'failed';
  readonly status: number;
}

const FAILED: Decision = { kind: 'failed', status: 0 };
const MAX_BODY_BYTES = 16 * 1024;
/**
 * Status codes of a server that does not work. 500 is not among them: a client with an unusual name may cause it, and
 * must not lock out others.
 */
const DOWN = [502, 503, 504];

/** Sends one kind of question to a server. */
export class Endpoint {
  readonly template: RequestTemplate;
  readonly #client: HttpClient;
  readonly #guard: Guard;
  readonly #name: string;

  constructor(template: RequestTemplate, settings: HttpSettings, context: SourceContext, slots: Slots) {
    const { maxConcurrent } = settings;
    this.template = template;
    this.#client = new HttpClient(template.url, {
      tls: settings,
      maxSockets: maxConcurrent,
      maxBodyBytes: MAX_BODY_BYTES
    });
    this.#name = template.url.origin + template.url.pathname;
    this.#guard = new Guard(this.#name, settings, context, slots);
  }

  /** Send a request and read the decision. Failures are reported, not thrown. */
  async ask(call: HttpCall, signal: AbortSignal): Promise<Decision> {
    const decision = await this.#guard.run(signal, async (ending) => this.#read(await this.#client.send(call, ending)));
    return decision ?? FAILED;
  }

  close(): void {
    this.#guard.close();
    this.#client.close();
  }

  #read({ status, body }: HttpAnswer): Decision {
    if (DOWN.includes(status)) throw new BrokerError('HTTP_FAILED', `${this.#name} answered with status ${status}`);
    if (status === 200 || status === 204)
      return { kind: body.toString().trim() === 'ignore' ? 'ignore' : 'allow', status };
    if (status >= 400 && status < 500) return { kind: 'deny', status };
    this.#guard.report(
      new BrokerError('HTTP_FAILED', `${this.#name} answered with status ${status}, which decides nothing`)
    );
    return FAILED;
  }
}
