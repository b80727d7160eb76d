import { type Lexis, RULE_LEXIS, STREAM_LEXIS } from './lexis.ts';
import type { BinaryOperator } from './tree.ts';

/** Predicates, which can be negated: `a NOT IN (1, 2)`. */
export type Predicate = 'IN' | 'BETWEEN' | 'LIKE';

export type Operator = BinaryOperator | Predicate;

/** NOT binds more weakly than a comparison, a sign more strongly than every operator. */
export const NOT_PRECEDENCE = 3;
export const COMPARING = 4;
export const SIGN_PRECEDENCE = 7;

/** The capabilities of a SQL dialect. Code tests capabilities, never the name of a dialect. */
export interface Dialect {
  /** Words that cannot be names, in upper case. */
  readonly keywords: ReadonlySet<string>;
  /** The spelling of its tokens. */
  readonly lexis: Lexis;
  /** The binding powers of its operators, weakest first. */
  readonly precedence: ReadonlyMap<string, number>;
  /** Operators that are words, keyed by the word in upper case. NOT stands for the predicates that follow it. */
  readonly wordOperators: ReadonlyMap<string, Operator>;
  /** Hints for words of other dialects. */
  readonly wordHints: Readonly<Record<string, string | undefined>>;
  /** Hints for symbols of other dialects, keyed by an unexpected symbol and the character before it: `==`. */
  readonly symbolHints: Readonly<Record<string, string | undefined>>;
  /** Support for `FOREACH ... DO ... INCASE`. */
  readonly hasForeach: boolean;
  /** Support for NOT before a condition. */
  readonly hasNot: boolean;
  /** True if `a = b = c` compares the result of `a = b` with c. */
  readonly chainsComparisons: boolean;
  /** Support for lists `[a, b]`, ranges `[1..4]` and slices `a[1..2]`. */
  readonly hasLists: boolean;
  /** Support for parts `a[1:3]`, and for steps below the value of any expression: `f(x)[0]->a`. */
  readonly hasParts: boolean;
  /** Support for `*` as an argument, and for `demo.*`. */
  readonly hasWildcards: boolean;
  /** Support for `f(x) OVER (PARTITION BY a WHEN b)`. */
  readonly hasOver: boolean;
  /** Support for `a IN b`, where b is an array. */
  readonly hasInArray: boolean;
  /** True if `-3` is a number, as opposed to a sign before a number. */
  readonly hasSignedNumbers: boolean;
  /** The implementation of `=~`, whose right side is a topic filter. */
  readonly matchTopic: ((topic: string, filter: string) => boolean) | undefined;
  /** True if `is_null` is also true for JSON null, as opposed to absent values only. */
  readonly nullIsAbsent: boolean;
}

/** Binding powers by operator. The operators of a line bind equally; the key of the line is their binding power. */
function precedenceOf(levels: Readonly<Record<number, string>>): ReadonlyMap<string, number> {
  const entries = Object.entries(levels).flatMap(([power, operators]) =>
    operators.split(' ').map((operator) => [operator, Number(power)] as const)
  );
  return new Map(entries);
}

/** The keywords of rules over broker events. */
const RULE_KEYWORDS = 'AND AS CASE IF ELSE ELSIF FROM IN NOT OR SELECT WHEN THEN FOREACH INCASE END DO WHERE';

const RULE_PRECEDENCE = precedenceOf({ 1: 'OR', 2: 'AND', 4: '= != < > <= >= =~ IN', 5: '+ -', 6: '* / div mod' });
const RULE_WORD_OPERATORS: Dialect['wordOperators'] = new Map([
  ['AND', 'AND'],
  ['OR', 'OR'],
  ['IN', 'IN'],
  ['NOT', 'IN'],
  ['DIV', 'div'],
  ['MOD', 'mod']
]);

const RULE_HINTS: Dialect['wordHints'] = {
  IS: 'use is_null(x) or is_not_null(x)',
  NULL: 'use is_null(x) or is_not_null(x)',
  LIKE: 'use regex_match(x, pattern)',
  BETWEEN: 'use x >= a AND x <= b',
  DISTINCT: 'each event is evaluated separately, so DISTINCT has no meaning',
  GROUP: 'each event is evaluated separately, so GROUP BY has no meaning',
  ORDER: 'each event is evaluated separately, so ORDER BY has no meaning',
  HAVING: 'use WHERE',
  LIMIT: 'each event is evaluated separately, so LIMIT has no meaning',
  JOIN: 'a statement evaluates one event at a time; name several topics with commas',
  UNION: 'create one rule for each statement',
  IF: 'use CASE WHEN condition THEN a ELSE b END',
  INCASE: 'INCASE is before FROM: FOREACH list DO fields INCASE condition FROM "a/b"'
};

const RULE_SYMBOL_HINTS: Dialect['symbolHints'] = {
  '==': 'equality is a single =',
  '->': 'use a dot: payload.a',
  '(*': 'each event is evaluated separately; aggregates such as count(*) are for stream rules'
};

/**
 * The dialect of rules over broker events: the union of the grammars of the documented releases 4.1 and 4.2.
 * @param matchTopic whether a topic name matches a topic filter
 */
export function ruleDialect(matchTopic: (topic: string, filter: string) => boolean, nullIsAbsent = false): Dialect {
  return {
    keywords: new Set(RULE_KEYWORDS.split(' ')),
    lexis: RULE_LEXIS,
    precedence: RULE_PRECEDENCE,
    wordOperators: RULE_WORD_OPERATORS,
    wordHints: RULE_HINTS,
    symbolHints: RULE_SYMBOL_HINTS,
    hasForeach: true,
    hasNot: true,
    chainsComparisons: false,
    hasLists: true,
    hasParts: false,
    hasWildcards: false,
    hasOver: false,
    hasInArray: false,
    hasSignedNumbers: false,
    matchTopic,
    nullIsAbsent
  };
}

/**
 * The keywords of statements over streams. Words that have a meaning only in certain places, such as FILTER and ASC,
 * can be names.
 */
const STREAM_KEYWORDS =
  'SELECT FROM AS INNER LEFT RIGHT FULL CROSS JOIN ON WHERE GROUP HAVING ORDER LIMIT AND OR NOT IN BETWEEN LIKE CASE WHEN THEN ELSE END';

/** The dialect of statements over streams [stream rules 4]. */
export const STREAM_DIALECT: Dialect = {
  keywords: new Set(STREAM_KEYWORDS.split(' ')),
  lexis: STREAM_LEXIS,
  precedence: precedenceOf({
    1: 'OR',
    2: 'AND',
    4: '= != < > <= >= IN BETWEEN LIKE',
    5: '+ - | ^',
    6: '* / % &'
  }),
  wordOperators: new Map([
    ['AND', 'AND'],
    ['OR', 'OR'],
    ['IN', 'IN'],
    ['NOT', 'IN'],
    ['BETWEEN', 'BETWEEN'],
    ['LIKE', 'LIKE']
  ]),
  wordHints: {
    IS: 'use isNull(x)',
    NULL: 'use isNull(x)',
    NOT: 'use x = false, or NOT IN, NOT BETWEEN, NOT LIKE',
    DISTINCT: 'use GROUP BY, or deduplicate(x, true)',
    FILTER: 'FILTER (WHERE ...) follows a window in GROUP BY',
    JOIN: 'name the kind of the join: INNER JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN or CROSS JOIN',
    UNION: 'create one rule for each statement',
    OFFSET: 'LIMIT counts from the first row'
  },
  symbolHints: { '==': 'equality is a single =', '||': 'join strings with concat(a, b)' },
  hasForeach: false,
  hasNot: false,
  chainsComparisons: true,
  hasLists: false,
  hasParts: true,
  hasWildcards: true,
  hasOver: true,
  hasInArray: true,
  hasSignedNumbers: true,
  matchTopic: undefined,
  nullIsAbsent: true
};
