import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** Return the path of a request without its query. */
export function pathOf({ url = '' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** Answer an upgrade request with a status, and close the socket. @param headers further headers */
export function respond(socket: Duplex, status: number, headers: Readonly<Record<string, string>> = {}): void {
  const { STATUS_CODES } = process.getBuiltinModule('node:http');
  const text = STATUS_CODES[status] as string;
  socket.on('error', () => {}); // the client has disconnected
  socket.once('finish', () => socket.destroy());
  const all = { Connection: 'close', 'Content-Type': 'text/plain', 'Content-Length': text.length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${text}\r\n${lines.join('')}\r\n${text}`);
}

/** True if an upgrade request is for a WebSocket. HTTP clients of Java and curl offer `h2c` with usual requests. */
export function isForWebSocket({ headers }: IncomingMessage): boolean {
  return /^websocket$/i.test(headers.upgrade ?? '');
}

const OF_UPGRADE: ReadonlySet<string> = new Set(['upgrade', 'http2-settings', 'connection']);

/**
 * Let a server answer an upgrade request as if nothing had been offered, as Node does without a listener of upgrade requests [RFC 9110 7.8]. Node has
 * stopped reading the connection, and has not read the body: the connection begins again with the request without the offer.
 * @param head what has been read after the header
 */
export function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders, headers } = request;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (!OF_UPGRADE.has(rawHeaders[at].toLowerCase())) text += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  const options = (headers.connection ?? '')
    .split(',')
    .filter((option) => !OF_UPGRADE.has(option.trim().toLowerCase()));
  if (options.length > 0) text += `Connection: ${options.join()}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]));
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket);
}
