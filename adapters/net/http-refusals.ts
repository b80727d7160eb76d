import { type IncomingMessage, maxHeaderSize, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** A reason to refuse a request before it reaches a handler. */
interface Refusal {
  readonly status: 400 | 404 | 408 | 413 | 417 | 431;
  readonly message: string;
}

const PHRASES = {
  400: 'Bad Request',
  404: 'Not Found',
  408: 'Request Timeout',
  413: 'Content Too Large',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large'
} as const;
/** The `code` fields of the management interface for an unknown method and for an invalid request. */
const UNKNOWN_METHOD = 102;
const WRONG = 108;

/** The refusal for an error of the parser. */
function refusalOf({ code, message }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: `the URL and the headers are larger than ${maxHeaderSize} bytes` };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, message: 'the chunk extensions of the body are too large' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'the request was not complete in time' };
    case 'HPE_INVALID_METHOD':
      return { status: 400, message: 'the request does not begin with a known method of HTTP' };
    case 'ERR_SSL_HTTP_REQUEST':
      return { status: 400, message: 'this port serves HTTPS: use https:// instead of http://' };
    default:
      return { status: 400, message: `the request is not valid HTTP: ${message}` };
  }
}

/**
 * Answer a request that the parser of Node has refused, and close its connection.
 * @param error the error of the event `clientError`
 */
export function refuseUnparsed(socket: Duplex, error: NodeJS.ErrnoException): void {
  endWith(socket, refusalOf(error));
}

/** Answer a request with the method CONNECT, and close its connection. */
export function refuseConnect(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => {}); // the client has disconnected
  endWith(socket, { status: 404, message: 'this server is not a proxy, and does not serve the method CONNECT' });
}

function endWith(socket: Duplex, refusal: Refusal): void {
  const { status } = refusal;
  const body = bodyOf(refusal);
  const head = `HTTP/1.1 ${status} ${PHRASES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`, () => socket.destroy());
}

/** Answer a request whose `Expect` header cannot be satisfied. */
export function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  answerWith(response, {
    status: 417,
    message: `the server cannot do what the header Expect asks for: "${request.headers.expect}"`
  });
}

/**
 * Answer a request of HTTP/1.1 without the header `Host`.
 * @returns false if it has one or does not need one
 */
export function refuseWithoutHost(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.headers.host !== undefined || request.httpVersion !== '1.1') return false;
  answerWith(response, { status: 400, message: 'the request has no header Host' });
  return true;
}

function answerWith(response: ServerResponse, refusal: Refusal): void {
  const body = bodyOf(refusal);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close'
  };
  response.writeHead(refusal.status, headers).end(body);
}

function bodyOf({ status, message }: Refusal): string {
  return JSON.stringify({ code: status === 404 ? UNKNOWN_METHOD : WRONG, message });
}
