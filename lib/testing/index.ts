/// <reference types="node" preserve="true" />
/** The test kit: a broker without ports, a virtual clock, and links with simulated faults. It works with any test runner. */
export { type ArmedTimer, VirtualClock, type VirtualClockOptions } from './clock.ts';
export { ExpectationFailed, type ExpectOptions, type SeenMessage } from './expectation.ts';
export type { FakeTimers, MockTimers, RunnerTimers } from './fake-timers.ts';
export {
  createTestBroker,
  type KitOutside,
  LeakError,
  type LeakPolicy,
  type LinkTarget,
  type PortOptions,
  TestBroker,
  type TestBrokerOf,
  type TestBrokerOptions,
  type TestPort,
  type WithSchemaBroker
} from './kit.ts';
export type { Direction, Link, LoggedPacket } from './link.ts';
export type { Command, PacketChoice } from './link-direction.ts';
export type { MqttJsClient, MqttJsStores } from './mqtt-js.ts';
export { type RecordedConnection, RecordingWriter, type Side } from './recording.ts';
export type { ReplayedDelivery, ReplayedEnd, ReplayLog, ReplayOptions } from './replay.ts';
export { type StoreCase, type StoreContractOptions, storeContract } from './store-contract.ts';
