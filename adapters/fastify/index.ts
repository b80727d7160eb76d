/// <reference types="node" preserve="true" />
/** The broker as a plugin of Fastify. */
export type { HostListener, HostOptions } from '../hosts/index.ts';
export type { FastifyMqttListener, FastifyMqttOptions } from './options.ts';
export { fastifyMqtt } from './plugin.ts';
