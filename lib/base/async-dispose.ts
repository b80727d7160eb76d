// Defines Symbol.asyncDispose where a realm lacks it: Node 20 and 22 define it for the main realm alone, and Jest runs tests in another. Without
// it the methods for `await using` would get the name "undefined". The value is the one that compilers fall back to.
if ((Symbol.asyncDispose as symbol | undefined) === undefined)
  Object.defineProperty(Symbol, 'asyncDispose', { value: Symbol.for('Symbol.asyncDispose') });

export {};
