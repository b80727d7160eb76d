/** What a dialect of SQL has. Code tests these capabilities, never the name of a dialect. */
export interface Dialect {
  /** The words that no name can be, in upper case. */
  readonly keywords: ReadonlySet<string>;
  /** `FOREACH ... DO ... INCASE`. */
  readonly hasForeach: boolean;
  /** `=~`, whose right side is a topic filter. */
  readonly matchTopic: ((topic: string, filter: string) => boolean) | undefined;
  /** `is_null` is true for the null of JSON, too, and not only for what is absent. */
  readonly nullIsAbsent: boolean;
}

/** The keywords of rules over broker events. */
const RULE_KEYWORDS = 'AND AS CASE IF ELSE ELSIF FROM IN NOT OR SELECT WHEN THEN FOREACH INCASE END DO WHERE';

/**
 * The dialect of rules over broker events: the union of the grammars of the documented releases 4.1 and 4.2.
 * @param matchTopic whether a topic name matches a topic filter
 */
export function ruleDialect(matchTopic: (topic: string, filter: string) => boolean, nullIsAbsent = false): Dialect {
  return { keywords: new Set(RULE_KEYWORDS.split(' ')), hasForeach: true, matchTopic, nullIsAbsent };
}
