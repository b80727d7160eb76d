/** The broker within the life cycle of an app of a web framework: options, start and stop. For adapters. */
export { HostedBroker } from './hosted-broker.ts';
export { HOST_OPTIONS, type HostListener, type HostOptions, type HostSettings } from './options.ts';
