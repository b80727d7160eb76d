import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MountPorts } from './call.ts';
import type { MountedServices } from './mounted-services.ts';
import { nodeCall } from './node-call.ts';
import { send } from './send.ts';

/** The part of a Koa context that is used. */
export interface KoaContext {
  /** The request of Node. */
  readonly req: IncomingMessage;
  /** The answer of Node. */
  readonly res: ServerResponse;
  /** The URL before a router has shortened the path. */
  readonly originalUrl: string;
  /** Holds `body` and `rawBody` from body parsers. */
  readonly request: object;
  /** False: Koa does not answer. */
  respond?: boolean;
}

/** A Koa middleware. */
export type KoaMiddleware = (context: KoaContext, next: () => Promise<unknown>) => Promise<unknown>;

/** Mount services on Koa. Unanswered paths go to `next`. */
export function toKoa(services: MountedServices, ports: MountPorts): KoaMiddleware {
  return async (context, next) => {
    const { req, res, originalUrl } = context;
    const body = () => {
      const { body: parsed = (req as { body?: unknown }).body, rawBody } = context.request as {
        readonly body?: unknown;
        readonly rawBody?: unknown;
      };
      return { stream: req, parsed, raw: rawBody };
    };
    const answer = await services.answer({ url: req.url ?? '/', originalUrl }, (place) =>
      nodeCall(req, place, { body, clock: ports.clock })
    );
    if (answer === undefined) return next();
    context.respond = false;
    return send(req, res, { answer, ports });
  };
}
