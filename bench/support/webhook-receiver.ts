import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Counters of a receiver. */
export interface ReceiverFigures {
  readonly received: number;
  /** Events whose sequence number does not follow the previous one of their client. */
  readonly faults: number;
}

/**
 * Receives the events of a webhook, one or a list in each request, and prints its port: `node webhook-receiver.js`. GET
 * returns the counters.
 */
const figures = { received: 0, faults: 0 };
const next = new Map<string, number>();
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify(figures satisfies ReceiverFigures));
    return;
  }
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    response.end();
    const events = [JSON.parse(body)].flat() as { readonly from_client_id: string; readonly payload: string }[];
    for (const { from_client_id: clientId, payload } of events) {
      const sequence = Number.parseInt(payload, 10);
      const expected = next.get(clientId) ?? 0;
      figures.received++;
      if (sequence !== expected) figures.faults++;
      next.set(clientId, sequence + 1);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
