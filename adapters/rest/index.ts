/** What REST interfaces have in common: calls and answers apart from the server, routing, and mounting on servers. For adapters. */

export type { Answer, Body, BodyLimits, Call, MountPorts, Service } from './call.ts';
export {
  type FastifyInstance,
  type FastifyPlugin,
  type FastifyReply,
  type FastifyRequest,
  toFastify
} from './fastify.ts';
export { Fault, type FaultKind } from './fault.ts';
export { type FetchFacts, type FetchHandler, toFetch } from './fetch.ts';
export { type KoaContext, type KoaMiddleware, toKoa } from './koa.ts';
export { MountedServices } from './mounted.ts';
export { type NodeHandler, toNode } from './node.ts';
export { type Found, type Route, Router } from './router.ts';
