import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../lib/index.ts';
import {
  BodyBytes,
  bodyIncomplete,
  bodyTooSlow,
  checkHeaders,
  checkParsed,
  checkUnread,
  textFromHost
} from './body.ts';
import type { Body, BodyLimits, Call, Scope } from './call.ts';
import type { CallPlace } from './mounted-services.ts';

/** The state of a request body after the parsers of the host. */
interface HostBody {
  /** The body, unless it has been read. */
  readonly stream: Readable;
  /** The value from a parser; undefined: none. */
  readonly parsed?: unknown;
  /** The bytes or text preserved by a parser. */
  readonly raw?: unknown;
}

/** Properties that a host app may set on an authorized request of node:http. */
interface HostScope {
  /** The scope of the client, for `credentials: 'host'`. */
  readonly embermqScope?: Scope;
}

/** Create the call for a request of node:http. */
export function nodeCall(
  request: IncomingMessage & HostScope,
  place: CallPlace,
  { body, clock }: { readonly body: () => HostBody; readonly clock: Clock }
): Call {
  const header = (name: string) => headerOf(request, name);
  return {
    method: request.method ?? 'GET',
    path: place.path,
    mountedAt: place.mountedAt,
    query: place.query,
    remoteAddress: request.socket?.remoteAddress,
    isSecure: (request.socket as Partial<TLSSocket> | undefined)?.encrypted === true,
    original: request,
    scope: request.embermqScope,
    header,
    body: (limits) => bodyOf(body(), header, limits, clock)
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
  limits: BodyLimits,
  clock: Clock
): Promise<Body> {
  const text = textFromHost(raw, limits.maxBytes) ?? textFromHost(parsed, limits.maxBytes);
  if (text !== undefined) return { text };
  // a parser for other types has left the stream unread, and undefined or {} as the body
  if (!stream.readableDidRead && !stream.readableEnded) {
    checkHeaders(header, limits.maxBytes);
    await undefined; // Node first parses the rest of the received data: most often the whole body
    return { text: whole(stream, limits) ?? (await read(stream, limits, clock)) };
  }
  if (parsed === undefined) {
    checkUnread(header);
    return { text: '' };
  }
  checkParsed(header('content-type'));
  return { value: parsed };
}

/** @returns undefined if the body is not complete yet @throws Fault bodyTooLarge, notJson */
function whole(stream: Readable & { readonly complete?: boolean }, { maxBytes }: BodyLimits): string | undefined {
  if (stream.complete !== true || stream.readableLength === 0) return undefined;
  const bytes = new BodyBytes(maxBytes);
  bytes.add(stream.read());
  return bytes.text();
}

function read(stream: Readable, { maxBytes, timeoutMs }: BodyLimits, clock: Clock): Promise<string> {
  return new Promise((resolve, reject) => {
    const bytes = new BodyBytes(maxBytes);
    const end = (error?: Error) => {
      clock.clearTimeout(timer);
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
    const timer = clock.setTimeout(() => end(bodyTooSlow(timeoutMs)), timeoutMs);
    stream.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
    if (stream.destroyed) onClose();
  });
}
