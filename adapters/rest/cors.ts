import type { BrowserSettings } from './browser-checks.ts';
import type { Answer, Call } from './call.ts';

/** Methods and headers that pages of other origins may send, as in the original, and credentials. */
const HEADERS = 'Accept, Accept-Language, Authorization, Content-Type, Content-Language, Origin';
/** Headers that these pages may read. */
const READABLE = 'Allow, Retry-After, WWW-Authenticate';

/** True for a CORS preflight request from a page of an allowed origin. */
export function isPreflight(call: Call, origins: BrowserSettings['origins']): boolean {
  const asks = call.method === 'OPTIONS' && call.header('access-control-request-method') !== undefined;
  return asks && allowedOrigin(call, origins) !== undefined;
}

/**
 * Add the headers that let pages of allowed origins read the answer.
 * @param methods the methods of the path, for preflight requests
 */
export function withCors(
  call: Call,
  answer: Answer,
  { origins, methods }: { readonly origins: BrowserSettings['origins']; readonly methods: readonly string[] }
): Answer {
  const origin = allowedOrigin(call, origins);
  if (origin === undefined) return answer;
  const more: Readonly<Record<string, string>> = isPreflight(call, origins)
    ? { 'access-control-allow-methods': methods.join(', '), 'access-control-allow-headers': HEADERS }
    : { 'access-control-expose-headers': READABLE };
  return { ...answer, headers: { ...answer.headers, 'access-control-allow-origin': origin, vary: 'Origin', ...more } };
}

/** The origin of the page that sent a call; undefined: not sent by a page, or not allowed. */
function allowedOrigin(call: Call, origins: BrowserSettings['origins']): string | undefined {
  const origin = call.header('origin');
  return origin !== undefined && (origins === 'any' || origins.has(origin)) ? origin : undefined;
}
