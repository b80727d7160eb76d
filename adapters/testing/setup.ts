import {
  type Broker,
  type IfTyped,
  InvalidInput,
  type NoSchemas,
  type SchemaBroker,
  type SchemaTable,
  StateError,
  type WithSchemas
} from '../../lib/index.ts';
import type { TestBroker, TestBrokerOf, TestBrokerOptions, VirtualClock } from '../../lib/testing/index.ts';
import { createTestBroker } from './kit.ts';

/** The hooks of a test runner: those of Vitest, Jest, node:test, Mocha and the like. */
export interface TestHooks {
  /** Registers a function that runs before each test. */
  beforeEach(run: () => Promise<void>): unknown;
  /** Registers a function that runs after each test. */
  afterEach(run: () => Promise<void>): unknown;
}

/** Access to the kit of the running test. */
export interface BrokerSetup<Data = unknown> {
  /** The kit of the running test. @throws StateError KIT_MISSING outside of a test */
  readonly kit: TestBroker<Data>;
  /** The broker of the kit. */
  readonly broker: Broker<Data>;
  /** The virtual clock of the kit. */
  readonly clock: VirtualClock;
}

/** Access to the kit of the running test, with the option `schemas`. */
export interface SchemaSetup<S extends SchemaTable> {
  /** The kit of the running test. @throws StateError KIT_MISSING outside of a test */
  readonly kit: TestBrokerOf<S>;
  /** The broker of the kit: `message.value` has the type of the schema of the same filter. */
  readonly broker: SchemaBroker<S>;
}

/** The setup of some options: `BrokerSetup`, with typed values if they have schemas. */
export type SetupOf<S extends SchemaTable> = [keyof S] extends [never] ? BrokerSetup : SchemaSetup<S> & BrokerSetup;

/** Options of the kits, or a function that returns them for each test. */
export type TestSettings<Options> = Options | (() => Options | Promise<Options>);

/**
 * Create a kit before each test and dispose of it afterwards, with the hooks of any test runner.
 *
 * ```ts
 * import { afterEach, beforeEach, expect, it } from 'vitest';
 *
 * const test = setupBroker({ beforeEach, afterEach });
 * it('reports that it is online', async () => {
 *   await startDevice(test.kit.stream());
 *   expect((await test.kit.expectMessage('state')).text).toBe('online');
 * });
 * ```
 *
 * The default of `leaks` is `error` here: a test that leaves something open fails, and a failing test shows its own
 * error.
 * @param options those of `createTestBroker`, or a function that returns them for each test, for example with a new
 * store
 * @throws InvalidInput OPTION_INVALID; StateError KIT_IN_USE in the hook if tests run concurrently
 */
export function setupBroker<const S extends SchemaTable = NoSchemas>(
  hooks: TestHooks,
  options?: TestSettings<TestBrokerOptions & Partial<WithSchemas<S>>>
): SetupOf<S>;
/** Set up kits with the type of the data that hooks and sources keep with clients. @throws as without a type */
export function setupBroker<Data, Caller = unknown>(
  this: Caller,
  hooks: TestHooks,
  options?: TestSettings<TestBrokerOptions<Data>>,
  ...rest: IfTyped<Caller>
): BrokerSetup<Data>;
export function setupBroker<Data>(
  hooks: TestHooks,
  options: TestSettings<TestBrokerOptions<Data>> = {}
): BrokerSetup<Data> {
  checkHooks(hooks);
  let current: TestBroker<Data> | undefined;
  /** Tests between their hooks. */
  let running = 0;
  hooks.beforeEach(async () => {
    if (++running > 1) {
      const text = 'setupBroker: the previous test still runs; call createTestBroker in tests that run concurrently';
      throw new StateError('KIT_IN_USE', text);
    }
    const chosen = typeof options === 'function' ? await options() : options;
    const leaks = chosen.leakCheck === false ? 'ignore' : 'error';
    current = await createTestBroker<Data>({ leaks, ...chosen });
  });
  // Runners call this also after a `beforeEach` that has failed, so the last one of tests that overlap ends the kit.
  hooks.afterEach(async () => {
    running = Math.max(running - 1, 0);
    if (running > 0) return;
    const kit = current;
    current = undefined;
    await kit?.[Symbol.asyncDispose]();
  });
  const kitOf = (): TestBroker<Data> => {
    if (current !== undefined) return current;
    const text =
      'setupBroker: there is no kit outside of a test; use it in tests, and in hooks that are added after it';
    throw new StateError('KIT_MISSING', text);
  };
  return {
    get kit() {
      return kitOf();
    },
    get broker() {
      return kitOf().broker;
    },
    get clock() {
      return kitOf().clock;
    }
  };
}

function checkHooks(hooks: TestHooks | undefined): void {
  const expected = 'the hooks of the test runner, as in setupBroker({ beforeEach, afterEach })';
  if (typeof hooks !== 'object' || hooks === null) throw new InvalidInput('OPTION_INVALID', 'hooks', expected, hooks);
  for (const name of ['beforeEach', 'afterEach'] as const)
    if (typeof hooks[name] !== 'function') throw new InvalidInput('OPTION_INVALID', name, expected, hooks[name]);
}
