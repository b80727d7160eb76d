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
  readonly precedence: Readonly<Partial<Record<Operator, number>>>;
  /** Its operators that are words, by the word in upper case. NOT stands for the predicates that follow it. */
  readonly wordOperators: Readonly<Record<string, Operator | undefined>>;
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

const COMPARISONS = {
  '=': COMPARING,
  '!=': COMPARING,
  '<': COMPARING,
  '>': COMPARING,
  '<=': COMPARING,
  '>=': COMPARING
};

/** The keywords of rules over broker events. */
const RULE_KEYWORDS = 'AND AS CASE IF ELSE ELSIF FROM IN NOT OR SELECT WHEN THEN FOREACH INCASE END DO WHERE';

const RULE_PRECEDENCE: Dialect['precedence'] = {
  OR: 1,
  AND: 2,
  ...COMPARISONS,
  '=~': COMPARING,
  IN: COMPARING,
  '+': 5,
  '-': 5,
  '*': 6,
  '/': 6,
  div: 6,
  mod: 6
};

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
    wordOperators: { AND: 'AND', OR: 'OR', IN: 'IN', NOT: 'IN', DIV: 'div', MOD: 'mod' },
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
  precedence: {
    OR: 1,
    AND: 2,
    ...COMPARISONS,
    IN: COMPARING,
    BETWEEN: COMPARING,
    LIKE: COMPARING,
    '+': 5,
    '-': 5,
    '|': 5,
    '^': 5,
    '*': 6,
    '/': 6,
    '%': 6,
    '&': 6
  },
  wordOperators: { AND: 'AND', OR: 'OR', IN: 'IN', BETWEEN: 'BETWEEN', LIKE: 'LIKE', NOT: 'IN' },
  wordHints: {
    IS: 'use isNull(x)',
    NULL: 'use isNull(x)',
    NOT: 'use x = false, or NOT IN, NOT BETWEEN, NOT LIKE',
    DISTINCT: 'use GROUP BY, or deduplicate(x, true)',
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
