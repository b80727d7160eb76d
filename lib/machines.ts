/// <reference types="node" preserve="true" />
/** The charts of the actors, for reading, drawing and testing. The only entry point whose types are xstate's. */

// The modules of the charts make a machine when it is first used: the machines took 2 ms of an import of `embermq`.
import { brokerMachine as brokerMachineOf } from './broker/broker.machine.ts';
import { ruleMachine as ruleMachineOf } from './rules/rule.machine.ts';
import { sessionMachine as sessionMachineOf } from './session/life/session.machine.ts';
import { storeMachine as storeMachineOf } from './store/store.machine.ts';
import { streamRuleMachine as streamRuleMachineOf } from './streams/rule/stream-rule.machine.ts';

export type {
  ActorRef,
  ActorSnapshot,
  /** @deprecated Use `ActorSnapshot`. */
  ActorSnapshot as ReplaySnapshot
} from './base/actor.ts';
export { type Chart, Charted, type ChartHost, ChartRun, type ChartState } from './base/charted.ts';
export { Replay } from './base/replay.ts';
export { type ActorLogic, type ReplayedActor, ReplayedActors } from './base/replayed-actor.ts';
export type { BrokerActions, BrokerEvent } from './broker/chart.ts';
export type { RuleActions, RuleChartEvent } from './rules/chart.ts';
export type { SessionActions, SessionEvent } from './session/life/chart.ts';
export type { StoreActions, StoreEvent } from './store/chart.ts';
export type { StreamRuleActions, StreamRuleEvent } from './streams/chart.ts';

/** The lifecycle of a broker: idle (created or starting), connected (accepting), disconnected (disconnecting its clients, then stopped). */
export const brokerMachine = /* @__PURE__ */ brokerMachineOf();

/**
 * The lifecycle of a rule: idle (defined, and disabled or starting), connected (attached, events reach it), disconnected (its actions could not
 * be created; they are tried again later).
 */
export const ruleMachine = /* @__PURE__ */ ruleMachineOf();

/** The lifecycle of a session. */
export const sessionMachine = /* @__PURE__ */ sessionMachineOf();

/**
 * The lifecycle of a store: closed, open, or failed, which means that a commit has failed and none has succeeded since.
 *
 * One or two events belong to a commit, none to a change. A commit, a fold and a pulse that are due are fields of the ledger.
 */
export const storeMachine = /* @__PURE__ */ storeMachineOf();

/**
 * The lifecycle of a stream rule: idle (defined, or starting for the first time), connected (running, rows flow), disconnected (stopped, with a
 * reason; it may start again by its schedule or its restart strategy).
 */
export const streamRuleMachine = /* @__PURE__ */ streamRuleMachineOf();
