import type { Broker } from '../../lib/index.ts';
import type { MountPorts, Service } from './call.ts';
import { type FastifyPlugin, toFastify } from './fastify.ts';
import { type FetchFacts, toFetch } from './fetch.ts';
import { type KoaMiddleware, toKoa } from './koa.ts';
import { MountedServices } from './mounted-services.ts';
import { type NodeHandler, toNode } from './node.ts';

/**
 * A handler for servers that use the Fetch API: Hono, Bun, Deno, Next. Unanswered requests go to `next`, or get 404 if
 * there is none.
 * @param facts facts that a `Request` does not contain
 */
export type MountedFetch = <R = never>(
  request: Request,
  facts?: FetchFacts & {
    /** Answers other requests. Default: they get 404. */
    readonly next?: (() => R | Promise<R>) | undefined;
  }
) => Promise<Response | R>;

/** A mountable service, in the forms for different servers. */
export interface HttpMounts {
  /** A handler of node:http, and a middleware of Express and Connect. */
  readonly node: NodeHandler;
  /** A handler for servers that use the Fetch API: Hono, Bun, Deno, Next. */
  readonly fetch: MountedFetch;
  /** A plugin of Fastify: `app.register(api.fastify)`. */
  readonly fastify: FastifyPlugin;
  /** A middleware of Koa: `app.use(api.koa)`. */
  readonly koa: KoaMiddleware;
  /**
   * The methods that are answered for the path of a URL, for answers to `OPTIONS`; none: the path is unknown.
   * @param url as the mount receives it: `/api/v4/clients`
   */
  methods(url: string): readonly string[];
}

/**
 * Create the mountable forms of services for one server.
 * @param during the activity of the services, for error reports
 * @throws InvalidInput OPTION_INVALID if two services have the same prefix
 */
export function mountsOf(
  broker: Broker,
  list: readonly Service[],
  during = 'answering a management request'
): HttpMounts {
  const services = new MountedServices(list);
  const ports: MountPorts = {
    clock: broker.clock,
    failed: (error) => broker.failed(error, during)
  };
  const fetch = toFetch(services, ports);
  return {
    node: toNode(services, ports),
    fetch: async (request, facts) =>
      (await fetch(request, facts)) ?? (facts?.next ? facts.next() : new Response(null, { status: 404 })),
    fastify: toFastify(services, ports),
    koa: toKoa(services, ports),
    methods: (url) => services.methods(url)
  };
}
