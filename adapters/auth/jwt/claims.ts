import { checkAccessRules, isPlainObject } from '../../../lib/adapter.ts';
import type { AccessRule } from '../../../lib/index.ts';
import { isUserName } from '../outgoing/user-name.ts';

/** The claims of a token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Names of a client that are compared with claims. */
interface Names {
  readonly clientId: string;
  readonly username: string | undefined;
}

/** Find the claim that does not have its required value. @returns undefined if all have */
export function wrongClaim(claims: Claims, required: ReadonlyMap<string, string>, names: Names): string | undefined {
  for (const [name, template] of required) {
    if (names.username === undefined && template.includes('%u')) return name;
    const value = template.replace(
      /%[cu]/g,
      (placeholder) => (placeholder === '%c' ? names.clientId : names.username) ?? ''
    );
    const claim = own(claims, name);
    const isRight = Array.isArray(claim) ? claim.includes(value) : claim === value;
    if (!isRight) return name;
  }
  return undefined;
}

/**
 * The user name in a claim.
 * @returns undefined if the claim is not a valid name
 */
export function usernameIn(claims: Claims, name: string): string | undefined {
  const value = own(claims, name);
  return isUserName(value) ? value : undefined;
}

/**
 * The access rules in a claim: a list of rules, or topic filters by action, in which case everything else is denied.
 * @returns undefined if the claim is missing
 * @throws InvalidInput if the rules are not valid
 */
export function rulesIn(claims: Claims, name: string): readonly AccessRule[] | undefined {
  const value = own(claims, name);
  if (value === undefined) return undefined;
  const rules = (isPlainObject(value) ? rulesByAction(value) : value) as readonly AccessRule[];
  checkAccessRules(rules);
  return rules;
}

const ACTIONS: Readonly<Record<string, AccessRule['action']>> = { pub: 'publish', sub: 'subscribe', all: 'pubsub' };

function rulesByAction(lists: Readonly<Record<string, unknown>>): readonly unknown[] {
  const rules = Object.entries(lists).map(([key, topic]) => {
    // an unknown key is passed on, so that the check reports it
    if (!Object.hasOwn(ACTIONS, key)) return { access: 'allow', [key]: topic };
    return { access: 'allow', action: ACTIONS[key], topic: topic ?? null };
  });
  const allowed = rules.filter((rule) => !Array.isArray(rule.topic) || rule.topic.length > 0);
  return [...allowed, { access: 'deny', action: 'pubsub' }];
}

/** A claim of the token itself, not an inherited property. */
export function own(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}
