import { type Lexis, RULE_LEXIS, STREAM_LEXIS } from './lexis.ts';
import type { BinaryOperator } from './tree.ts';

/** What tests a value and may be negated: `a NOT IN (1, 2)`. */
export type Predicate = 'IN' | 'BETWEEN' | 'LIKE';

export type Operator = BinaryOperator | Predicate;

/** NOT binds weaker than a comparison, a sign stronger than every operator. */
export const NOT_PRECEDENCE = 3;
export const COMPARING = 4;
export const SIGN_PRECEDENCE = 7;

/** What a dialect of SQL has. Code tests these capabilities, never the name of a dialect. */
export interface Dialect {
  /** The words that no name can be, in upper case. */
  readonly keywords: ReadonlySet<string>;
  /** How its tokens are written. */
  readonly lexis: Lexis;
  /** The binding powers of its operators, from the weakest. */
  readonly precedence: ReadonlyMap<string, number>;
  /** Its operators that are words, by the word in upper case. NOT stands for the predicates that follow it. */
  readonly wordOperators: ReadonlyMap<string, Operator>;
  /** What to write instead of words of other dialects. */
  readonly wordHints: Readonly<Record<string, string | undefined>>;
  /** `FOREACH ... DO ... INCASE`. */
  readonly hasForeach: boolean;
  /** NOT before a condition. */
  readonly hasNot: boolean;
  /** `a = b = c` compares the result of `a = b`. */
  readonly chainsComparisons: boolean;
  /** Lists `[a, b]`, ranges `[1..4]` and slices `a[1..2]`. */
  readonly hasLists: boolean;
  /** Parts `a[1:3]`, and steps below the value of any expression: `f(x)[0]->a`. */
  readonly hasParts: boolean;
  /** `*` as an argument, and `demo.*`. */
  readonly hasWildcards: boolean;
  /** `f(x) OVER (PARTITION BY a WHEN b)`. */
  readonly hasOver: boolean;
  /** `a IN b`, where b is an array. */
  readonly hasInArray: boolean;
  /** `-3` is a number, and not a sign before one. */
  readonly hasSignedNumbers: boolean;
  /** `=~`, whose right side is a topic filter. */
  readonly matchTopic: ((topic: string, filter: string) => boolean) | undefined;
  /** `is_null` is true for the null of JSON, too, and not only for what is absent. */
  readonly nullIsAbsent: boolean;
}

/** Operators from the weakest: those of a line bind equally, and the number of a line is their binding power. */
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
  DISTINCT: 'each event is evaluated by itself, so DISTINCT has no meaning',
  GROUP: 'each event is evaluated by itself, so GROUP BY has no meaning',
  ORDER: 'each event is evaluated by itself, so ORDER BY has no meaning',
  HAVING: 'use WHERE',
  LIMIT: 'each event is evaluated by itself, so LIMIT has no meaning',
  JOIN: 'a statement evaluates one event at a time; name several topics with commas',
  UNION: 'make one rule for each statement'
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

/** The keywords of statements over streams. Words with a meaning at some places only, such as FILTER and ASC, can be names. */
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
    FILTER: 'FILTER (WHERE ...) stands behind a window in GROUP BY',
    JOIN: 'a join has a kind: INNER JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN or CROSS JOIN',
    UNION: 'make one rule for each statement',
    OFFSET: 'LIMIT counts from the first row'
  },
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
