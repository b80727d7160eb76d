import { BodyBytes, bodyIncomplete, bodyTooSlow, checkHeaders, checkParsed, textFromHost } from './body.ts';
import { type Answer, type Body, type BodyLimits, type Call, isWhole, type MountPorts, type Scope } from './call.ts';
import { Fault } from './fault.ts';
import type { CallPlace, MountedServices } from './mounted-services.ts';

/** Facts about a request that only the server knows. */
export interface FetchFacts {
  /** IP address of the client, which a `Request` does not contain. */
  readonly remoteAddress?: string | undefined;
  /** The scope of the client, for `credentials: 'host'`. Default: none. */
  readonly scope?: Scope | undefined;
  /**
   * The path that the host app has removed from the URL of the request, as `app.mount('/broker', ...)` of Hono does.
   */
  readonly base?: string | undefined;
  /** The body, if the host app has read it: the text, or the parsed value. */
  readonly body?: unknown;
}

/** A handler for servers that speak the Fetch API. */
export type FetchHandler = (request: Request, facts?: FetchFacts) => Promise<Response | undefined>;

/**
 * Mount services on a server that uses the Fetch API: Hono, Bun, Deno, Next. Resolves to undefined if the path is not
 * answered here.
 */
export function toFetch(services: MountedServices, ports: MountPorts): FetchHandler {
  return async (request, facts = {}) => {
    const { url } = request;
    const hash = url.indexOf('#');
    const answer = await services.answer(
      { url: url.slice(pathAt(url), hash < 0 ? undefined : hash), base: facts.base },
      (place) => callOf(request, place, { facts, ports })
    );
    if (answer === undefined) return undefined;
    const { status, body, closes = false } = answer;
    // requests of HTTP/2 have no Host header; their connections are not closed
    const isLast = closes && request.body !== null && facts.body === undefined && request.headers.has('host');
    const headers = isLast ? { ...answer.headers, connection: 'close' } : answer.headers;
    if (request.method !== 'HEAD') return new Response(contentOf(body, ports), { status, headers });
    if (!isWhole(body)) await body[Symbol.asyncIterator]().return?.();
    return new Response(null, { status, headers });
  };
}

/** The body of a `Response`, which must have none with the status 204, not even an empty one. */
function contentOf(body: Answer['body'], ports: MountPorts) {
  if (!isWhole(body)) return streamOf(body, ports);
  return body.length === 0 ? null : body;
}

/** The index of the path in an absolute URL. The URL is not parsed, because parsing changes it. */
function pathAt(url: string): number {
  const at = url.indexOf('/', url.indexOf('://') + 3);
  return at < 0 ? url.length : at;
}

function callOf(
  request: Request,
  place: CallPlace,
  { facts, ports }: { readonly facts: FetchFacts; readonly ports: MountPorts }
): Call {
  const header = (name: string) => {
    const value = request.headers.get(name);
    return value === null && name === 'host' ? new URL(request.url).host : (value ?? undefined);
  };
  return {
    method: request.method,
    ...place,
    remoteAddress: facts.remoteAddress,
    isSecure: /^https:/i.test(request.url),
    original: request,
    scope: facts.scope,
    header,
    body: (limits) => bodyOf(request, facts.body, { ...limits, header, ports })
  };
}

async function bodyOf(
  request: Request,
  given: unknown,
  {
    maxBytes,
    timeoutMs,
    header,
    ports: { clock }
  }: BodyLimits & { readonly header: Call['header']; readonly ports: MountPorts }
): Promise<Body> {
  if (given !== undefined) {
    const text = textFromHost(given, maxBytes);
    if (text !== undefined) return { text };
    checkParsed(header('content-type'));
    return { value: given };
  }
  if (request.bodyUsed)
    throw new Fault(
      'failed',
      'the host app has read the body: it must pass it as `facts.body`, or a clone of the request'
    );
  if (request.body === null) return { text: '' };
  checkHeaders(header, maxBytes);
  const reader = request.body.getReader();
  const bytes = new BodyBytes(maxBytes);
  let timer: unknown;
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(bodyTooSlow(timeoutMs)), timeoutMs);
  });
  const next = () =>
    reader.read().catch(() => {
      throw bodyIncomplete();
    });
  try {
    for (;;) {
      const { done, value } = await Promise.race([next(), late]);
      if (done) return { text: bytes.text() };
      bytes.add(value);
    }
  } catch (error) {
    reader.cancel(error).catch(() => {}); // the original error is thrown
    throw error;
  } finally {
    clock.clearTimeout(timer);
  }
}

function streamOf(parts: AsyncIterable<string>, ports: MountPorts): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let isCancelled = false;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await iterator.next();
        if (isCancelled) return;
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        ports.failed(error);
        controller.error(error);
      }
    },
    async cancel() {
      isCancelled = true;
      await iterator.return?.();
    }
  });
}
