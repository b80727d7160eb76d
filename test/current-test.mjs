// Loaded before `node:test` in each process of a test run. `node:test` attributes an uncaught exception to the test in whose asynchronous context
// it occurred. For this it enables an async hook with `init` and `destroy`, which Node.js calls for every promise: a quarter of the CPU time of the
// tests, measured with those of the store (70 s with the hook, 53 s without). This module attributes such an exception to the test that started
// last. A process runs its tests one after the other, so this is the same test, unless the exception occurs after the end of its test.
//
// `node:test` takes the three functions from the public module `async_hooks`, so it is loaded while that module has the replacements. A version of
// Node.js that takes them from elsewhere behaves as without this module.
import asyncHooks from 'node:async_hooks';

/** The key of the current test among the asynchronous contexts that `node:test` knows. */
const CURRENT = 1;
const { AsyncResource, createHook, executionAsyncId } = asyncHooks;
let hooks = { init() {}, destroy() {} };
let current;

class Scope extends AsyncResource {
  runInAsyncScope(...args) {
    if (this.constructor === Scope) return super.runInAsyncScope(...args); // that of the reporters
    const outer = current;
    current = this;
    try {
      return super.runInAsyncScope(...args);
    } finally {
      // The function of `describe` has returned. What follows it belongs to the suite around it, or to the file.
      if (this.constructor.name === 'Suite') current = outer;
    }
  }
}

Object.assign(asyncHooks, {
  AsyncResource: Scope,
  createHook(callbacks) {
    hooks = callbacks;
    return { enable() {}, disable() {} };
  },
  executionAsyncId() {
    if (current === undefined) hooks.destroy(CURRENT);
    else hooks.init(CURRENT, 'Test', 0, current);
    return CURRENT;
  }
});
await import('node:test');
Object.assign(asyncHooks, { AsyncResource, createHook, executionAsyncId });
