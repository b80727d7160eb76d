import { type Body, type BodyLimits, type Call, pathBehind, type Service } from './call.ts';
import { Fault } from './fault.ts';

/** What a server knows beside the request. */
export interface FetchFacts {
  /** IP address of the client, which a `Request` does not have. */
  readonly remoteAddress?: string;
}

/** A handler for servers that speak the Fetch API. */
export type FetchHandler = (request: Request, facts?: FetchFacts) => Promise<Response | undefined>;

/** Mount a service on a server that speaks the Fetch API: Hono, Bun, Deno, Next. It resolves to undefined if the path is not answered here. */
export function toFetch(service: Service): FetchHandler {
  return async (request, facts = {}) => {
    const { url } = request;
    const target = pathBehind(service.prefixes, url.slice(pathAt(url)));
    const answer = target && (await service.answer(callOf(request, target, facts)));
    if (answer === undefined) return undefined;
    const { status, headers, body } = answer;
    const content = request.method === 'HEAD' ? null : typeof body === 'string' ? body : streamOf(body);
    return new Response(content, { status, headers });
  };
}

/** Where the path begins in an absolute URL. It is not parsed, because parsing changes it. */
function pathAt(url: string): number {
  const at = url.indexOf('/', url.indexOf('://') + 3);
  return at < 0 ? url.length : at;
}

function callOf(
  request: Request,
  { path, query }: { readonly path: string; readonly query: string },
  { remoteAddress }: FetchFacts
): Call {
  const hash = query.indexOf('#');
  return {
    method: request.method,
    path,
    query: hash < 0 ? query : query.slice(0, hash),
    remoteAddress,
    header: (name) => request.headers.get(name) ?? undefined,
    body: (limits) => bodyOf(request, limits)
  };
}

async function bodyOf(request: Request, { maxBytes, timeoutMs }: BodyLimits): Promise<Body> {
  if (request.body === null) return { text: '' };
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Fault('bodyTooSlow', `the body was not complete after ${timeoutMs} ms`)),
      timeoutMs
    );
  });
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late]);
      if (done) return { text: Buffer.concat(chunks).toString() };
      bytes += value.length;
      if (bytes > maxBytes)
        throw new Fault('bodyTooLarge', `the body is larger than ${maxBytes} bytes (option maxBodyBytes)`);
      chunks.push(value);
    }
  } catch (error) {
    reader.cancel(error).catch(() => {}); // the error is thrown
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function streamOf(parts: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await iterator.return?.();
    }
  });
}
