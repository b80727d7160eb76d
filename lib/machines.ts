/// <reference types="node" preserve="true" />
/** The charts of the actors, for reading, drawing and testing. The only entry point whose types are xstate's. */
export { brokerMachine } from './broker/broker.machine.ts';
export type { BrokerActions as BrokerDeeds, BrokerEvent } from './broker/deeds.ts';
export { type ReplayInput, type ReplaySnapshot, replay } from './replay.ts';
export type { SessionActions as SessionDeeds, SessionEvent } from './session/deeds.ts';
export { sessionMachine } from './session/session.machine.ts';
