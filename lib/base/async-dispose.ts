// Defines Symbol.asyncDispose in realms that lack it: Node 20 and 22 define it in the main realm only, and Jest runs tests in another one.
// Without
// the symbol, the methods for `await using` would get the name "undefined". The value is the one that compilers use as a fallback.
if ((Symbol.asyncDispose as symbol | undefined) === undefined)
  Object.defineProperty(Symbol, 'asyncDispose', { value: Symbol.for('Symbol.asyncDispose') });

export {};
