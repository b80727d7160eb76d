import type { ClientRequest, IncomingMessage } from 'node:http';
import { BrokerError } from '../../lib/index.ts';

/** Of a response that is ignored, at most this much is read, for a limited time. */
const MAX_IGNORED_BYTES = 64 * 1024;
const MAX_IGNORED_MS = 1_000;

/** Read the body of a response. @param name the server, for messages @throws BrokerError HTTP_BODY_TOO_LARGE; errors of the connection */
export function readBody(response: IncomingMessage, maxBytes: number, name: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else reject(new BrokerError('HTTP_BODY_TOO_LARGE', `the response of ${name} is larger than ${maxBytes} bytes`));
    });
    // Node says only "aborted" if the server has ended the connection
    response.on('error', (error) =>
      reject(error.message === 'aborted' ? new Error('the response is incomplete', { cause: error }) : error)
    );
    response.on('end', () => resolve(Buffer.concat(chunks)));
  });
}

/**
 * Read a response that is ignored, so that the connection can be reused, but only if it is short and arrives soon, and
 * the server also reads the rest of the request.
 */
export function discardBody(request: ClientRequest, response: IncomingMessage): void {
  let bytes = 0;
  const slow = setTimeout(() => request.destroy(), MAX_IGNORED_MS);
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_IGNORED_BYTES) request.destroy();
  });
  response.on('error', () => undefined);
  request.on('close', () => clearTimeout(slow));
}
