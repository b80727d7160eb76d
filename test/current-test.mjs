// Loaded before `node:test` in each process of a test run. `node:test` attributes an uncaught exception to the test in whose asynchronous context it
// occurred. For this it enables an async hook with `init` and `destroy`, which Node.js calls for every promise: a quarter of the CPU time of the
// tests, measured with those of the store (70 s with the hook, 53 s without). This module attributes such an exception to the test that started
// last. A process runs its tests one after the other, so this is the same test, unless the exception occurs after the end of its test.
//
// `node:test` also finds the suite to which a test belongs by the asynchronous context. Here this is the suite whose function is running, so the
// functions of suites must be synchronous.
//
// `node:test` takes the three functions from the public module `async_hooks`, so it is loaded while that module has the replacements. A version of
// Node.js that takes them from elsewhere behaves as without this module.
import asyncHooks from 'node:async_hooks';

/** The key of the current test, and one without a test, among the asynchronous contexts that `node:test` knows. */
const CURRENT = 1;
const NONE = 0;
const { AsyncResource, createHook, executionAsyncId } = asyncHooks;
let init = () => {};
/** The suite, test or hook whose function is running and has not returned yet. */
let running;
/** The test that started last. */
let last;
/** True while an uncaught exception is handled. */
let isUncaught = false;

class Scope extends AsyncResource {
  runInAsyncScope(...args) {
    if (this.constructor === Scope) return super.runInAsyncScope(...args); // of a reporter
    const outer = running;
    running = this;
    if (this.constructor.name === 'Test') last = this;
    try {
      return super.runInAsyncScope(...args);
    } finally {
      running = outer;
    }
  }
}

Object.assign(asyncHooks, {
  AsyncResource: Scope,
  createHook(callbacks) {
    init = callbacks.init;
    // Called before the listeners of `node:test`, which it adds next.
    for (const event of ['uncaughtException', 'unhandledRejection'])
      process.on(event, () => {
        isUncaught = true;
      });
    return { enable() {}, disable() {} };
  },
  executionAsyncId() {
    const test = isUncaught ? last : running;
    isUncaught = false;
    if (test === undefined) return NONE;
    init(CURRENT, 'Test', NONE, test);
    return CURRENT;
  }
});
await import('node:test');
Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId });
