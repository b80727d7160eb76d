import type { IncomingMessage, ServerResponse } from 'node:http';
import { stream as streamModule } from './builtins.ts';
import type { MountPorts } from './call.ts';
import type { MountedServices } from './mounted-services.ts';
import { nodeCall } from './node-call.ts';
import { send } from './send.ts';

/** The part of a Fastify request that is used. */
export interface FastifyRequest {
  /** The request of Node. */
  readonly raw: IncomingMessage;
  /** The body, as a parser has left it. */
  readonly body: unknown;
}

/** The part of a Fastify reply that is used. */
export interface FastifyReply {
  /** The answer of Node. */
  readonly raw: ServerResponse;
  /** The headers that were set. */
  getHeaders(): Readonly<Record<string, number | string | string[] | undefined>>;
  /** Keep Fastify from answering. */
  hijack(): unknown;
  /** Answer with 404. */
  callNotFound(): unknown;
}

/** The part of a Fastify instance that is used. */
export interface FastifyInstance {
  /** The path below which the plugin is registered. */
  readonly prefix: string;
  /** Remove the parsers of bodies. */
  removeAllContentTypeParsers(): unknown;
  /** Add a parser of bodies. */
  addContentTypeParser(
    type: string,
    parser: (request: never, payload: IncomingMessage, done: (error: Error | null, body?: unknown) => void) => void
  ): unknown;
  /** Add a route for all methods. */
  all(path: string, handler: (request: FastifyRequest, reply: FastifyReply) => void): unknown;
}

/** A Fastify plugin with encapsulated parsers and routes. */
export type FastifyPlugin = (instance: FastifyInstance, options: object, done: (error?: Error) => void) => void;

/**
 * Mount services on Fastify. An unanswered path below a prefix goes to the host's handler for unknown paths. Headers
 * set by hooks of the host are sent; its hooks `preSerialization` and `onSend` do not run.
 */
export function toFastify(services: MountedServices, ports: MountPorts): FastifyPlugin {
  const answer = async (request: FastifyRequest, reply: FastifyReply, base: string): Promise<void> => {
    const { raw } = request;
    const url = raw.url ?? '/';
    const stream = request.body instanceof streamModule().Readable ? request.body : raw;
    const found = await services.answer({ url: cut(url, base), originalUrl: url }, (place) =>
      nodeCall(raw, place, { body: () => ({ stream }), clock: ports.clock })
    );
    if (found === undefined) {
      reply.callNotFound();
      return;
    }
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined && !reply.raw.headersSent) reply.raw.setHeader(name, value);
    await send(raw, reply.raw, { answer: found, ports });
  };
  return (instance, _options, done) => {
    const { prefix: base } = instance;
    instance.removeAllContentTypeParsers();
    // the body is not read before it is needed, whatever its type
    instance.addContentTypeParser('*', (_request, payload, ready) => ready(null, payload));
    const handler = (request: FastifyRequest, reply: FastifyReply) => {
      answer(request, reply, base).catch((error: unknown) => {
        reply.raw.destroy();
        ports.failed(error);
      });
    };
    const places = new Set(services.prefixes.map((prefix) => (base.endsWith(prefix) ? '' : prefix)));
    for (const place of places) {
      instance.all(place === '' ? '/' : place, handler);
      instance.all(`${place}/*`, handler);
    }
    done();
  };
}

/** Remove from a URL as many segments as a path has, which may contain parameters. */
function cut(url: string, base: string): string {
  let at = 0;
  for (const segment of base.split('/')) {
    if (segment === '') continue;
    const next = url.slice(at + 1).search(/[/?]/);
    if (next < 0) return '/';
    at += next + 1;
  }
  return url[at] === '?' ? `/${url.slice(at)}` : url.slice(at);
}
