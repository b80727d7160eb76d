import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer, Body, BodyLimits, Call, Service } from './call.ts';
import { pathBehind } from './call.ts';
import { Fault } from './fault.ts';

/** A request of node:http, with what hosts add to it. */
type HostRequest = IncomingMessage & {
  /** The URL before a router of the host has cut the path (Express, Connect). */
  readonly originalUrl?: string;
  /** What a body parser of the host has made of the body. */
  readonly body?: unknown;
};

/** A handler of node:http, and a middleware of Express and Connect. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void
) => void;

/**
 * Mount a service on node:http, Express or Connect. A path that is not answered here goes to `next`, or is answered with 404 if there is
 * none. `failed` is called with errors that no caller can be thrown to.
 */
export function toNode(service: Service, failed: (error: unknown) => void): NodeHandler {
  return (request: HostRequest, response, next) => {
    // the cut URL first: a service with a prefix of its own may be mounted below a path of the host
    const { url = '/', originalUrl } = request;
    const target =
      pathBehind(service.prefixes, url) ??
      (originalUrl === undefined ? undefined : pathBehind(service.prefixes, originalUrl));
    const leave = () => {
      if (next !== undefined) next();
      else send(response, { status: 404, headers: {}, body: '' }, false).catch(failed);
    };
    if (target === undefined) {
      leave();
      return;
    }
    service
      .answer(callOf(request, target))
      .then((answer) => (answer === undefined ? leave() : send(response, answer, request.method === 'HEAD')))
      .catch((error: unknown) => {
        response.destroy();
        failed(error);
      });
  };
}

function callOf(request: HostRequest, { path, query }: { readonly path: string; readonly query: string }): Call {
  return {
    method: request.method ?? 'GET',
    path,
    query,
    remoteAddress: request.socket.remoteAddress,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    body: (limits) => bodyOf(request, limits)
  };
}

async function bodyOf(request: HostRequest, { maxBytes, timeoutMs }: BodyLimits): Promise<Body> {
  const { body } = request;
  if (typeof body === 'string') return { text: body };
  if (Buffer.isBuffer(body)) return { text: body.toString() };
  // a parser that ran but did not know the type leaves undefined or {} and the stream unread
  if (body !== undefined && request.readableEnded) return { value: body };
  const { 'content-length': announced } = request.headers;
  if (announced !== undefined && Number(announced) > maxBytes) throw tooLarge(maxBytes);
  return { text: await read(request, maxBytes, timeoutMs) };
}

function read(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (settle: () => void) => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      settle();
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) end(() => reject(tooLarge(maxBytes)));
      else chunks.push(chunk);
    };
    const onEnd = () => end(() => resolve(Buffer.concat(chunks).toString()));
    const onError = (error: Error) => end(() => reject(error));
    const onClose = () =>
      end(() => reject(new Error('the client has closed the connection before the body was complete')));
    const timer = setTimeout(
      () => end(() => reject(new Fault('bodyTooSlow', `the body was not complete after ${timeoutMs} ms`))),
      timeoutMs
    );
    request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  });
}

function tooLarge(maxBytes: number): Fault {
  return new Fault('bodyTooLarge', `the body is larger than ${maxBytes} bytes (option maxBodyBytes)`);
}

async function send(response: ServerResponse, { status, headers, body }: Answer, isHead: boolean): Promise<void> {
  if (typeof body === 'string') {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    response.end(isHead ? undefined : body);
    return;
  }
  response.writeHead(status, headers);
  if (!isHead) {
    for await (const part of body) {
      if (response.destroyed) return;
      if (!response.write(part)) await drained(response);
    }
  }
  response.end();
}

/** Wait until more can be written, or the connection is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
