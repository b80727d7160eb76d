/// <reference types="node" preserve="true" />
/** The charts of the actors, for reading, drawing and testing. The only entry point whose types are xstate's. */

export { type ReplayInput, type ReplaySnapshot, replay } from './base/replay.ts';
export type { BrokerActions as BrokerDeeds, BrokerEvent } from './broker/actions.ts';
export { brokerMachine } from './broker/broker.machine.ts';
export type { SessionActions as SessionDeeds, SessionEvent } from './session/actions.ts';
export { sessionMachine } from './session/session.machine.ts';
