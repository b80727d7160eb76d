import { InvalidInput } from '../base/errors.ts';

/**
 * Refuse a value that is not a broker, for functions that take one as their first argument. Brokers of another copy of the package pass.
 * @param call name of the function
 * @throws InvalidInput OPTION_INVALID
 */
export function checkBroker(value: unknown, call: string): void {
  const { listeners, attach } = (value ?? {}) as { readonly listeners?: unknown; readonly attach?: unknown };
  if (typeof listeners === 'function' && typeof attach === 'function') return;
  const expected = 'a broker, which createBroker returns, as the first argument';
  throw new InvalidInput('OPTION_INVALID', call, expected, value);
}
