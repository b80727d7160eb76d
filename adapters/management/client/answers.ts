import { ManagementError } from './error.ts';
import type { Page, PageMeta } from './types.ts';

/** Operations whose answer is the document itself, without an envelope. */
const DOCUMENTS: ReadonlySet<string> = new Set(['GET /openapi.json', 'GET /x/export']);
/** Operations whose answer is lines of text, which may have no end. */
const STREAMS: ReadonlySet<string> = new Set(['GET /x/events', 'GET /x/tail', 'POST /x/backup']);

/** Check whether the answer of an operation is a stream, read by `ManagementClient.lines` instead of `request`. */
export function isStream(method: string, path: string): boolean {
  return STREAMS.has(`${method} ${path}`);
}

/**
 * Read an answer.
 * @throws ManagementError if it is an error, or does not come from a management interface
 */
export function answerOf(
  { status, text }: { readonly status: number; readonly text: string },
  { method, path, url }: { readonly method: string; readonly path: string; readonly url: string }
): Page<unknown> {
  const body = parsed(text);
  const isEnvelope = body !== undefined && ('code' in body || 'message' in body);
  if (body !== undefined && !isEnvelope && status === 200 && DOCUMENTS.has(`${method} ${path}`))
    return { data: body, meta: undefined };
  const request = `${method} ${url}`;
  if (!isEnvelope) {
    const remedy = status === 404 ? '; the URL must include the prefix of the interface, for example /api/v4' : '';
    const message = `${request}: the answer with status ${status} is not from a management interface${remedy}`;
    throw new ManagementError(message, { status });
  }
  const { code, message, data, meta } = body;
  if (status < 400 && code === 0) return { data, meta: meta as PageMeta | undefined };
  throw new ManagementError(typeof message === 'string' ? message : `${request}: status ${status}`, {
    status,
    code: typeof code === 'number' ? code : undefined
  });
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Split a body into lines without line ends. */
export async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() as string;
      yield* lines;
    }
    rest += decoder.decode();
    if (rest !== '') yield rest;
  } finally {
    // if the body has ended or failed, there is nothing left to cancel
    await reader.cancel().catch(() => undefined);
  }
}
