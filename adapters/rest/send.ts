import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../lib/index.ts';
import { isAtOwnPort } from '../upgrades/index.ts';
import { type Answer, isWhole, type MountPorts } from './call.ts';

/** Time that a client has to read the answer if its body is not read to the end. */
const LINGER_MS = 2_000;
/** A client that reads nothing of a list for this time is disconnected. A backup ends and reports this earlier. */
const STALLED_MS = 90_000;
/** Length of the pieces in which a long part is written. */
const PIECE = 65_536;

/** Send an answer over node:http. Errors close the connection and are reported. */
export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { answer, ports }: { readonly answer: Answer; readonly ports: MountPorts }
): Promise<void> {
  try {
    // the host has answered meanwhile, for example after a timeout, or the client has disconnected
    if (response.headersSent || response.destroyed) await giveUp(answer);
    else if (!isWhole(answer.body)) await sendParts(request, response, answer.body, { answer, ports });
    else {
      const { status, headers, body, closes = false } = answer;
      const isLast = closes && !request.complete;
      // connections of HTTP/2 are not closed, and have no such header
      const close = isLast && request.httpVersionMajor === 1 ? { connection: 'close' } : {};
      response.writeHead(status, { ...headers, ...close, 'content-length': Buffer.byteLength(body) });
      if (isLast && isAtOwnPort(request)) {
        response.write(body);
        await discard(request, ports.clock);
        response.end();
      } else response.end(request.method === 'HEAD' ? undefined : body);
    }
  } catch (error) {
    response.destroy();
    ports.failed(error);
  }
}

/** End the parts of an answer that is not sent. */
async function giveUp({ body }: Answer): Promise<void> {
  if (!isWhole(body)) await body[Symbol.asyncIterator]().return?.();
}

async function sendParts(
  request: IncomingMessage,
  response: ServerResponse,
  parts: AsyncIterable<string>,
  { answer, ports }: { readonly answer: Answer; readonly ports: MountPorts }
): Promise<void> {
  // a closing server recognizes event streams, which do not end on their own, only by headers set before writeHead
  response.setHeader('content-type', answer.headers['content-type'] ?? 'application/json');
  response.writeHead(answer.status, answer.headers);
  if (request.method === 'HEAD') {
    response.end();
    return giveUp(answer);
  }
  const { clock } = ports;
  const iterator = parts[Symbol.asyncIterator]();
  let goOn: () => void = () => {};
  const onFree = () => goOn();
  const onClose = () => {
    goOn();
    iterator.return?.().catch((error: unknown) => ports.failed(error)); // the next part may take long
  };
  // added once for all parts: packages that compress answers do not notice when a listener is removed
  response.on('drain', onFree).on('close', onClose);
  try {
    for await (const part of { [Symbol.asyncIterator]: () => iterator }) {
      for (const piece of piecesOf(part)) {
        if (response.destroyed) return;
        if (response.write(piece) || response.destroyed) continue;
        const timer = answer.isEndless === true ? undefined : clock.setTimeout(() => response.destroy(), STALLED_MS);
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        clock.clearTimeout(timer);
      }
    }
    response.end();
  } finally {
    response.off('drain', onFree).off('close', onClose);
  }
}

/** Split a part into pieces that a slow client can read within the time limit. */
function* piecesOf(part: string): Iterable<string | Buffer> {
  if (part.length <= PIECE) {
    yield part;
    return;
  }
  const bytes = Buffer.from(part);
  for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

/**
 * Read and discard the rest of a body for a while. A connection that is closed while the client still writes is reset,
 * and the client may lose the answer. Not used on a server of the app, which controls its own connections.
 */
function discard(request: IncomingMessage, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clock.clearTimeout(timer);
      request.off('end', done).off('close', done);
      resolve();
    };
    const timer = clock.setTimeout(done, LINGER_MS);
    request.on('end', done).on('close', done);
    request.resume();
    if (request.complete || request.destroyed) done();
  });
}
