import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MountPorts } from './call.ts';
import type { MountedServices } from './mounted-services.ts';
import { nodeCall } from './node-call.ts';
import { send } from './send.ts';

/** A request of node:http, with what hosts add to it. */
type HostRequest = IncomingMessage & {
  /** The URL before a router of the host has cut the path (Express, Connect). */
  readonly originalUrl?: string;
  /** What a body parser of the host has made of the body. */
  readonly body?: unknown;
  /** What some parsers keep of it. */
  readonly rawBody?: unknown;
};

/** A handler of node:http, and a middleware of Express and Connect. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void
) => void;

/**
 * Mount services on node:http, Express or Connect. A path that is not answered here goes to `next`, or is answered with 404 if there is
 * none.
 */
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
      // what the host throws is not for us to catch
      (answer) => (answer === undefined ? queueMicrotask(leave) : send(request, response, { answer, ports })),
      (error: unknown) => {
        response.destroy();
        ports.failed(error);
      }
    );
  };
}
