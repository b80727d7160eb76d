/** The spelling of a dialect's tokens. Its patterns are sticky. */
export interface Lexis {
  /** Blanks and comments. */
  readonly space: RegExp;
  readonly word: RegExp;
  /** A key after a dot or an arrow, which may begin with a digit or an underscore, and may be a keyword. */
  readonly key: RegExp;
  readonly number: RegExp;
  /** True if a number may begin with its decimal point: `.5`. */
  readonly startsWithPoint: boolean;
  readonly symbol: RegExp;
  /** True if block comments exist, which may end within a line. */
  readonly hasBlockComments: boolean;
  /** The meaning of quoted text, by the code of the quote. */
  readonly quotes: Readonly<Record<number, 'string' | 'quoted' | undefined>>;
  /** True if strings have escapes such as `\n`. Without them, and in names, a doubled quote stands for one quote. */
  readonly hasEscapes: boolean;
  /** The quotes of names and of strings, for printing. */
  readonly nameQuote: string;
  readonly stringQuote: string;
  /** Words that are names only when quoted, besides the keywords, in upper case. */
  readonly ambiguous: ReadonlySet<string>;
  readonly numberHint: string;
  readonly keyHint: string;
  /** Hints for characters without a meaning. */
  readonly characterHints: Readonly<Record<string, string | undefined>>;
}

const DOUBLE = 0x22;
const SINGLE = 0x27;
const BACK = 0x60;

/** The tokens of rules over broker events. */
export const RULE_LEXIS: Lexis = {
  space: /(?:[ \t\r\n]|--[^\n]*)+/y,
  word: /\p{L}[\p{L}\p{N}_$@~]*/uy,
  key: /[\p{L}\p{N}_$@~]+/uy,
  number: /\d+(?:\.\d+(?:[eE][+-]?\d+)?)?/y,
  startsWithPoint: false,
  symbol: /<>|!=|<=|>=|=~|\.\.|[-+*/=<>(),.;[\]]/y,
  hasBlockComments: false,
  quotes: { [SINGLE]: 'string', [DOUBLE]: 'quoted' },
  hasEscapes: false,
  nameQuote: '"',
  stringQuote: "'",
  ambiguous: new Set(['TRUE', 'FALSE', 'DIV', 'MOD', 'DISTINCT']),
  numberHint: 'numbers are written 1, 1.5 or 1.5e3',
  keyHint: 'put keys with other characters in quotes: payload."a b"',
  characterHints: {
    '`': 'put names with other characters in double quotes: payload."a-b"',
    '#': 'put topics in double quotes: FROM "a/#"',
    '|': 'join strings with +',
    '&': 'use AND, or bitand(a, b)',
    '%': 'use mod',
    '!': 'use NOT'
  }
};

/** The tokens of statements over streams [stream rules 4.1]. */
export const STREAM_LEXIS: Lexis = {
  space: /(?:[ \t\r\n]|--[^\n]*|\/\*[\s\S]*?\*\/)+/y,
  word: /[\p{L}_][\p{L}\p{N}_]*/uy,
  key: /[\p{L}\p{N}_]+/uy,
  number: /(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/y,
  startsWithPoint: true,
  symbol: /<>|!=|<=|>=|->|[-+*/%&|^=<>(),.;:#[\]]/y,
  hasBlockComments: true,
  quotes: { [SINGLE]: 'string', [DOUBLE]: 'string', [BACK]: 'quoted' },
  hasEscapes: true,
  nameQuote: '`',
  stringQuote: '"',
  ambiguous: new Set(['TRUE', 'FALSE']),
  numberHint: 'numbers are written 1, 1.5, .5 or 1.5e3',
  keyHint: 'put keys with other characters in backquotes: a->`b c`',
  characterHints: {
    '!': 'use x = false, or !=',
    $: 'put names with other characters in backquotes: `$SYS/a`',
    '@': 'put names with other characters in backquotes: `a@b`',
    '{': 'use object_construct("a", 1)'
  }
};
