/** What REST interfaces have in common: calls and answers apart from the server, routing, and mounting on servers. For adapters. */

export { type Answer, type Body, type BodyLimits, type Call, pathBehind, type Service } from './call.ts';
export { Fault, type FaultKind } from './fault.ts';
export { type FetchFacts, type FetchHandler, toFetch } from './fetch.ts';
export { type NodeHandler, toNode } from './node.ts';
export { type Found, type Route, Router } from './router.ts';
