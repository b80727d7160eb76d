/** True if the tests run in their long form, with `TEST_LONG=1`: `.ci/full long`. */
export const IS_LONG = process.env.TEST_LONG === '1';

/**
 * The number of random samples of a test that compares with a slow version or checks a property: a fifth of what the long form takes. Each run
 * has other samples, unless SEED says which.
 */
export function samples(most: number): number {
  return IS_LONG ? most : Math.ceil(most / 5);
}

/** A size, such as a number of clients, of a test that shows the same with a smaller one: `long` in the long form, otherwise `short`. */
export function sized(short: number, long: number): number {
  return IS_LONG ? long : short;
}

/** The seed of a random test: that of `SEED` in the environment, otherwise a random one. */
export function readSeed(): number {
  return Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
}

/** The environment that repeats a run with this seed. The long form takes other steps with the same seed. */
export function shownSeed(seed: number): string {
  return `SEED=${seed}${IS_LONG ? ' TEST_LONG=1' : ''}`;
}

let first: number | undefined;

/** The numbers from `least` to `most`: all of them in the long form, otherwise each fifth one, beginning at random. */
export function someOf(least: number, most: number): number[] {
  if (first === undefined) {
    const seed = readSeed();
    if (!IS_LONG) console.log(`# each fifth one: ${shownSeed(seed)}`);
    first = seed % 5;
  }
  const numbers: number[] = [];
  for (let at = least + (IS_LONG ? 0 : first); at <= most; at += IS_LONG ? 1 : 5) numbers.push(at);
  return numbers;
}
