import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { MountPorts } from './call.ts';
import type { MountedServices } from './mounted-services.ts';
import { nodeCall } from './node-call.ts';
import { send } from './send.ts';

/** What is used of a request of Fastify. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly body: unknown;
}

/** What is used of a reply of Fastify. */
export interface FastifyReply {
  readonly raw: ServerResponse;
  getHeaders(): Readonly<Record<string, number | string | string[] | undefined>>;
  hijack(): unknown;
  callNotFound(): unknown;
}

/** What is used of an instance of Fastify. */
export interface FastifyInstance {
  /** The path below which the plugin is registered. */
  readonly prefix: string;
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    type: string,
    parser: (request: never, payload: IncomingMessage, done: (error: Error | null, body?: unknown) => void) => void
  ): unknown;
  all(path: string, handler: (request: FastifyRequest, reply: FastifyReply) => void): unknown;
}

/** A plugin of Fastify. Its parsers and routes are its own. */
export type FastifyPlugin = (instance: FastifyInstance, options: object, done: (error?: Error) => void) => void;

/**
 * Mount services on Fastify. A path below a prefix that is not answered here goes to the host's handler for unknown paths. Headers that
 * hooks of the host have set are sent; its hooks `preSerialization` and `onSend` do not run.
 */
export function toFastify(services: MountedServices, ports: MountPorts): FastifyPlugin {
  const answer = async (request: FastifyRequest, reply: FastifyReply, base: string): Promise<void> => {
    const { raw } = request;
    const url = raw.url ?? '/';
    const stream = request.body instanceof Readable ? request.body : raw;
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
    // the body is not read before it is wanted, whatever its type
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

/** A URL without as many segments as a path has, which may contain parameters. */
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
