/** The charts of the actors, for reading, drawing and testing. The only entry point whose types are xstate's. */
export { type BrokerDeeds, type BrokerEvent, brokerMachine } from './broker/broker.machine.ts';
export { type ReplayInput, type ReplaySnapshot, replay } from './replay.ts';
export { type SessionDeeds, type SessionEvent, sessionMachine } from './session/session.machine.ts';
