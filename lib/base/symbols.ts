// Texts that `console.log` prints for the objects of the package. `lib` imports no `node:util`: Node, Bun and Deno call
// the method `INSPECT` with the depth that is left and their options, of which only `stylize` is used.

/** Longer strings are cut, because a client id may have 65,535 bytes. */
const MAX_LENGTH = 100;
/** Members of a list that are named; the others are counted. */
const MAX_NAMED = 4;
/** Characters that a terminal does not print, or that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}]/gu;

/** The key of the method that `console.log` calls, `inspect.custom` of `node:util`. */
export const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;

type Stylize = (text: string, kind: string) => string;

/** The parts of a text for the console, in the colours of the terminal. */
interface ConsoleWords {
  /** A state, such as `connected`. */
  state(text: string): string;
  /** A string in quotes, with escapes, cut to 100 characters. */
  quoted(text: string): string;
  /** A number with its noun: `1 client`, `2 clients`. */
  count(number: number, noun: string): string;
}

/**
 * The text that `console.log` prints for an object: its kind with the first line of `describe`, and the others below, indented.
 * Never throws: `[Kind]` for an object below the depth of the output, and for one without state, such as the prototype of a class.
 * @param depth the depth that is left, as the runtime passes it
 * @param options the options of the output, as the runtime passes them
 */
export function consoleText(
  kind: string,
  depth: unknown,
  options: unknown,
  describe: (words: ConsoleWords) => readonly string[]
): string {
  const given = (options as { stylize?: unknown } | null | undefined)?.stylize;
  const stylize = typeof given === 'function' ? (given as Stylize) : plain;
  const brief = stylize(`[${kind}]`, 'special');
  if (typeof depth === 'number' && depth < 0) return brief;
  try {
    const [first, ...others] = describe({
      state: (text) => stylize(text, 'special'),
      quoted: (text) => stylize(JSON.stringify(cut(text)).replace(UNPRINTABLE, escaped), 'string'),
      count: (number, noun) => `${stylize(`${number}`, 'number')} ${noun}${number === 1 ? '' : 's'}`
    });
    return [`${kind} ${first}`, ...others].join('\n  ');
  } catch {
    return brief;
  }
}

/** A text in one line, without control characters, cut to a length. */
export function inOneLine(text: string, maxLength = MAX_LENGTH): string {
  return cut(text.replace(/\s+/g, ' ').replace(UNPRINTABLE, '').trim(), maxLength);
}

/** The first members of a list, separated by commas, and the number of the others. */
export function namedOf(members: readonly string[]): string {
  const more = members.length - MAX_NAMED;
  return `${members.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function cut(text: string, maxLength = MAX_LENGTH): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function plain(text: string): string {
  return text;
}

/**
 * Define `Symbol.asyncDispose` in realms that lack it: Node 20 and 22 define it in the main realm only, and Jest runs tests in another one.
 * Modules whose classes have the method for `await using` call it before the class; otherwise the method would get the name "undefined".
 * The value is the one that compilers use as a fallback.
 */
export function defineAsyncDispose(): void {
  if ((Symbol.asyncDispose as symbol | undefined) === undefined)
    Object.defineProperty(Symbol, 'asyncDispose', { value: Symbol.for('Symbol.asyncDispose') });
}
