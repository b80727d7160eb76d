import type { IncomingMessage } from 'node:http';
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
