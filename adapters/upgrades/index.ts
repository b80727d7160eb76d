/**
 * Connections of HTTP servers: limits for ports of this package, and upgrade requests with their origins and paths. For
 * adapters.
 */
export { type DescriptorCount, DescriptorReserve, Descriptors } from './descriptors.ts';
export { PROXY_HEADERS, type ProxyHeaderName, readProxies, TrustedProxies } from './forwarded.ts';
export { HttpPlaces, isAtOwnPort, peerOf } from './http-places.ts';
export { checkOrigins, LOOPBACK_ORIGINS, type OriginCheck } from './origins.ts';
export { isForWebSocket, pathOf, respond, serveWithoutUpgrade } from './requests.ts';
export { type Claimant, upgradesOf } from './upgrades.ts';
