import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../lib/index.ts';
import { BodyBytes, bodyIncomplete, bodyTooSlow, checkHeaders, checkParsed, textFromHost } from './body.ts';
import type { Body, BodyLimits, Call } from './call.ts';

/** What the host has done with the body of a request. */
export interface HostBody {
  /** Gives the body, if nothing has read it yet. */
  readonly stream: Readable;
  /** What a parser has made of it; undefined: nothing. */
  readonly parsed?: unknown;
  /** The bytes or the text that a parser has kept. */
  readonly raw?: unknown;
}

/** Make the call of a request of node:http. */
export function nodeCall(
  request: IncomingMessage,
  path: string,
  { query, body, clock }: { readonly query: string; readonly body: () => HostBody; readonly clock: Clock }
): Call {
  const header = (name: string) => headerOf(request, name);
  return {
    method: request.method ?? 'GET',
    path,
    query,
    remoteAddress: request.socket?.remoteAddress,
    header,
    body: (limits) => bodyOf(body(), header, { ...limits, clock })
  };
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  if (value === undefined && name === 'host') return headers[':authority'] as string | undefined; // HTTP/2
  return Array.isArray(value) ? value.join(', ') : value;
}

async function bodyOf(
  { stream, parsed, raw }: HostBody,
  header: Call['header'],
  limits: BodyLimits & { readonly clock: Clock }
): Promise<Body> {
  const text = textFromHost(raw, limits.maxBytes) ?? textFromHost(parsed, limits.maxBytes);
  if (text !== undefined) return { text };
  // a parser that did not know the type has left the stream unread, and undefined or {} as the body
  if (!stream.readableDidRead && !stream.readableEnded) {
    checkHeaders(header, limits.maxBytes);
    return { text: await read(stream, limits) };
  }
  if (parsed === undefined) return { text: '' };
  checkParsed(header('content-type'));
  return { value: parsed };
}

function read(
  stream: Readable,
  { maxBytes, timeoutMs, clock }: BodyLimits & { readonly clock: Clock }
): Promise<string> {
  return new Promise((resolve, reject) => {
    const bytes = new BodyBytes(maxBytes);
    let isOpen = true;
    const end = (error?: Error) => {
      isOpen = false;
      if (timer !== undefined) clock.clearTimeout(timer);
      stream.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
      if (error !== undefined) reject(error);
    };
    const attempt = (run: () => void) => {
      try {
        run();
      } catch (error) {
        end(error as Error);
      }
    };
    const onData = (chunk: Uint8Array | string) => attempt(() => bytes.add(chunk));
    const onEnd = () =>
      attempt(() => {
        resolve(bytes.text());
        end();
      });
    const onClose = () => end(bodyIncomplete());
    let timer: ReturnType<Clock['setTimeout']> | undefined;
    stream.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
    if (stream.destroyed) onClose();
    // most bodies come with their head, and need no timer
    process.nextTick(() => {
      if (isOpen && (stream as Partial<IncomingMessage>).complete !== true)
        timer = clock.setTimeout(() => end(bodyTooSlow(timeoutMs)), timeoutMs);
    });
  });
}
