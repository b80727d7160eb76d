/// <reference types="node" preserve="true" />
/** The test kit: a virtual clock, links with simulated faults, ports for other processes. It works with any test runner. */
export {
  type ArmedTimer,
  type Command,
  type Direction,
  ExpectationFailed,
  type ExpectOptions,
  type FakeTimers,
  LeakError,
  type LeakPolicy,
  type Link,
  type LinkTarget,
  type LoggedPacket,
  type MockTimers,
  type MqttJsClient,
  type MqttJsStores,
  type PacketChoice,
  type PortOptions,
  type ReplayedDelivery,
  type ReplayedEnd,
  type ReplayLog,
  type ReplayOptions,
  type RunnerTimers,
  type SeenMessage,
  type StoreCase,
  type StoreContractOptions,
  storeContract,
  TestBroker,
  type TestBrokerOf,
  type TestBrokerOptions,
  type TestPort,
  VirtualClock,
  type VirtualClockOptions,
  type WithSchemaBroker
} from '../../lib/testing/index.ts';
export { createTestBroker } from './kit.ts';
export { type RecordOptions, recordTraffic, type TrafficRecorder } from './recorder.ts';
export {
  type BrokerSetup,
  type SchemaSetup,
  type SetupOf,
  setupBroker,
  type TestHooks,
  type TestSettings
} from './setup.ts';
