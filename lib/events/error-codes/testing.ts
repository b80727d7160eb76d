import type { ErrorCodeEntry } from './row.ts';

/** Codes of the test kit. */
export const TESTING_CODES = {
  CLOCK_BUSY: {
    about: 'The clock was advanced inside a hook that it waits for.',
    remedy: 'Use `clock.setTimeout` to wait in a hook.'
  },
  CLOCK_STUCK: {
    about: 'Work did not end, so virtual time cannot go on.',
    remedy: 'Make sure that it ends, or raise `stuckMs`.'
  },
  DATE_INVALID: {
    about: 'A date cannot be read, or is in the past of the clock.',
    remedy: 'Use `stepWall` to set the wall clock back.'
  },
  FAKE_TIMERS_UNSUITABLE: {
    about: 'The clock of the kit cannot move the fake timers of the test runner (option `timers`).',
    remedy: 'Leave it to the kit to fake timers, or make the call that the message names.'
  },
  KIT_IN_USE: {
    about: 'A test of `setupBroker`, or a kit with the same fake timers, began while another one was running.',
    remedy:
      'Dispose of each kit at the end of its test. Call `createTestBroker` in tests that run concurrently, without the option `timers`.'
  },
  KIT_MISSING: {
    about: 'The kit of `setupBroker` was used outside of a test, or a kit after it was disposed of.',
    remedy: 'Use it in tests, and in hooks that are added after it; await in a test all that it does.'
  },
  LINK_NOT_FOUND: {
    about: 'The client is not connected through the kit.',
    remedy: 'Use `kit.connect` or `kit.stream`.'
  },
  MESSAGE_EXPECTED: {
    about: 'An expected message did not arrive.',
    remedy:
      'The error lists those that did. Begin the expectation before the cause of the message, and await it afterwards.'
  },
  MESSAGE_UNEXPECTED: { about: 'A message arrived that was not expected.', remedy: 'The error names it.' },
  PORTS_MISSING: {
    about: 'This kit can neither open ports nor read files.',
    remedy: 'Create it with `createTestBroker` of `embermq/testing`.'
  },
  RECORDING_INVALID: {
    about: 'A file is not a recording of traffic, or of another version.',
    remedy: 'Make it with `embermq record`; the message names the line.'
  },
  TEST_LEAKS: { about: 'The app under test left something open.', remedy: 'Close what the message lists.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
