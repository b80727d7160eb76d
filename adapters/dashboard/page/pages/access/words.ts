// The steps of a decision on a right, in words.
import { T } from '../../texts.ts';

const W = T.access.ruleWords;

/** An access rule as `/x/rights` has it. */
export interface DecidingRule {
  readonly access: string;
  readonly action: string;
  readonly topic?: string | readonly string[];
  readonly exact?: boolean;
  readonly clientid?: string;
  readonly username?: string;
  readonly has_username?: boolean;
  readonly ip_address?: string | readonly string[];
}

/** An access rule in a phrase: `deny publish to "plant/#" for client "c1"`. */
export function ruleText(rule: DecidingRule): string {
  const { access, action, topic, exact, clientid, username, has_username, ip_address } = rule;
  const topics = topic === undefined ? undefined : [topic].flat().map(quoted).join(', ');
  return [
    `${access} ${(W.actions as Readonly<Record<string, string>>)[action] ?? action}`,
    topics === undefined ? W.toAll : exact === true ? W.toExactly(topics) : W.to(topics),
    clientid === undefined ? '' : W.client(quoted(clientid)),
    username === undefined ? '' : W.user(quoted(username)),
    has_username === true ? W.anyUser : '',
    ip_address === undefined ? '' : W.from([ip_address].flat().join(', '))
  ].join('');
}

function quoted(name: string): string {
  return JSON.stringify(name);
}

/** The participant in a decision that a step has asked. */
export function askedText({ by, source }: { readonly by: string; readonly source?: string | undefined }): string {
  const asked = (T.access.askedOf as Readonly<Record<string, string>>)[by] ?? by;
  return source === undefined ? asked : `${asked}: ${source}`;
}
