/**
 * Common parts of REST interfaces: calls and answers independent of the server, routing, and mounting on servers. For
 * adapters.
 */

export { bodyTooLarge } from './body.ts';
export { BrowserChecks, type BrowserSettings, isSameOrigin } from './browser-checks.ts';
export { crypto, isUtf8, net } from './builtins.ts';
export {
  type Answer,
  type Body,
  type BodyLimits,
  type Call,
  isWhole,
  type MountPorts,
  type Scope,
  type Service
} from './call.ts';
export { isPreflight, withCors } from './cors.ts';
export {
  basicCredentials,
  type Caller,
  type CredentialFunction,
  type Credentials,
  type Identities
} from './credentials.ts';
export type { Json, OpenApiDocument } from './document.ts';
export { endingWith } from './ending.ts';
export {
  type FastifyInstance,
  type FastifyPlugin,
  type FastifyReply,
  type FastifyRequest,
  toFastify
} from './fastify.ts';
export { Fault, type FaultKind, faultFor } from './fault.ts';
/** @internal */
export { faultParts } from './fault-headers.ts';
export { type FetchFacts, type FetchHandler, toFetch } from './fetch.ts';
export { Guard, type Guarded, type Identify, type LoginSettings } from './guard.ts';
export {
  GUARD_OPTIONS,
  MOUNT_OPTIONS,
  type MountOptions,
  prefixRow,
  readCredentials,
  readMountOptions,
  readOrigins
} from './guard-options.ts';
export { type KoaContext, type KoaMiddleware, toKoa } from './koa.ts';
export { MountedServices } from './mounted-services.ts';
export { type HttpMounts, type MountedFetch, mountsOf } from './mounts.ts';
export { type NodeHandler, toNode } from './node.ts';
export { parseJson } from './parse-json.ts';
export { type Found, type Route, Router } from './router.ts';
export { shortened } from './shortened.ts';
