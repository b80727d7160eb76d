// The topics of a statement that was replaced, in the detail of a record of the log of reasons.

const UNTIL = /^until (\S+) it read (.*)$/s;

/** Describe the topics of a statement that is replaced. @param at the time, in milliseconds since 1970 */
export function formerTopics(topics: readonly string[], at: number): string {
  return `until ${new Date(at).toISOString()} it read ${topics.map((topic) => JSON.stringify(topic)).join(', ')}`;
}

/** The topics in a text of `formerTopics`; undefined: they are not known, because the text was cut. */
export function formerTopicsIn(text: string): readonly string[] | undefined {
  const [, , list] = UNTIL.exec(text) ?? [];
  try {
    return list === undefined ? undefined : JSON.parse(`[${list}]`);
  } catch {
    return undefined;
  }
}
