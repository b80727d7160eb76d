import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MountPorts } from './call.ts';
import type { MountedServices } from './mounted-services.ts';
import { nodeCall } from './node-call.ts';
import { send } from './send.ts';

/** A request of node:http, with properties added by hosts. */
type HostRequest = IncomingMessage & {
  /** The URL before a router of the host has shortened the path (Express, Connect). */
  readonly originalUrl?: string;
  /** The value of the body from a body parser of the host. */
  readonly body?: unknown;
  /** The raw body, which some parsers preserve. */
  readonly rawBody?: unknown;
};

/** A handler of node:http, and a middleware of Express and Connect. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void
) => void;

/** Mount services on node:http, Express or Connect. Unanswered paths go to `next`, or get 404 if there is none. */
export function toNode(services: MountedServices, ports: MountPorts): NodeHandler {
  return (request: HostRequest, response, next) => {
    const leave = () => {
      if (next !== undefined) next();
      else response.writeHead(404, { 'content-length': 0 }).end();
    };
    const body = () => ({ stream: request, parsed: request.body, raw: request.rawBody });
    const answering = services.answer({ url: request.url ?? '/', originalUrl: request.originalUrl }, (place) =>
      nodeCall(request, place, { body, clock: ports.clock })
    );
    if (answering === undefined) {
      leave();
      return;
    }
    answering.then(
      // errors of the host must not be caught here
      (answer) => (answer === undefined ? queueMicrotask(leave) : send(request, response, { answer, ports })),
      (error: unknown) => {
        response.destroy();
        ports.failed(error);
      }
    );
  };
}
