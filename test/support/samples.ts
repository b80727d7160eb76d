/** True if the tests run in their long form, with `TEST_LONG=1`: `.ci/full long`. */
export const IS_LONG = process.env.TEST_LONG === '1';

/**
 * The number of random samples of a test that compares with a slow version or checks a property: a fifth of what the long form takes. Each run
 * has other samples, unless SEED says which.
 */
export function samples(most: number): number {
  return IS_LONG ? most : Math.ceil(most / 5);
}

/** The size of what a test builds, such as a number of clients, if a smaller one shows the same: `long` in the long form, otherwise `short`. */
export function sized(short: number, long: number): number {
  return IS_LONG ? long : short;
}

/** The numbers from `first` to `last`: all of them in the long form, otherwise each fifth one, beginning at random. */
export function someOf(first: number, last: number): number[] {
  const step = IS_LONG ? 1 : 5;
  const numbers: number[] = [];
  for (let at = first + Math.floor(Math.random() * step); at <= last; at += step) numbers.push(at);
  return numbers;
}
