/// <reference types="node" preserve="true" />
/** The charts of the actors, for reading, drawing and testing. The only entry point whose types are xstate's. */

export type {
  ActorRef,
  ActorSnapshot,
  /** @deprecated Use `ActorSnapshot`. */
  ActorSnapshot as ReplaySnapshot
} from './base/actor.ts';
export { type Chart, Charted, type ChartHost, ChartRun, type ChartState } from './base/charted.ts';
export { Replay } from './base/replay.ts';
export { type ActorLogic, type ReplayedActor, ReplayedActors } from './base/replayed-actor.ts';
export { brokerMachine } from './broker/broker.machine.ts';
export type { BrokerActions, BrokerEvent } from './broker/chart.ts';
export type { RuleActions, RuleChartEvent } from './rules/chart.ts';
export { ruleMachine } from './rules/rule.machine.ts';
export type { SessionActions, SessionEvent } from './session/life/chart.ts';
export { sessionMachine } from './session/life/session.machine.ts';
export type { StoreActions, StoreEvent } from './store/chart.ts';
export { storeMachine } from './store/store.machine.ts';
export type { StreamRuleActions, StreamRuleEvent } from './streams/chart.ts';
export { streamRuleMachine } from './streams/rule/stream-rule.machine.ts';
