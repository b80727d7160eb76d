/// <reference types="node" preserve="true" />
/** The broker as a module of Nest. */
export type { HostListener, HostOptions } from '../hosts/index.ts';
export { BROKER, EmbermqModule } from './module.ts';
export type { EmbermqAsyncOptions, EmbermqDynamicModule, EmbermqModuleOptions, EmbermqProvider } from './options.ts';
