// A record about a subscription has the topic filter after rewriting. The one that the client requested is in its detail,
// because few records have one, and a record is found by both.

const NOTE = /requested as ("(?:[^"\\]|\\.)*")$/;

/** The end of the detail of a record whose topic filter was rewritten. @param requested the filter that the client requested */
export function requestedNote(requested: string): string {
  return `requested as ${JSON.stringify(requested)}`;
}

/** The topic filter in the note at the end of a detail; undefined: the filter was not rewritten, or is too long for the detail. */
export function requestedIn(detail: string | undefined): string | undefined {
  const quoted = detail === undefined ? undefined : NOTE.exec(detail)?.[1];
  return quoted === undefined ? undefined : (JSON.parse(quoted) as string);
}
