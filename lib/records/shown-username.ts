/** Replaces a user name that is a token. */
const TOKEN = '(token)';

/** A JSON Web Token in its compact form, signed (three parts) or encrypted (five parts), also after `Bearer`. */
const JWT = /^\s*(?:Bearer\s+)?eyJ[\w-]*(?:(?:\.[\w-]*){2}|(?:\.[\w-]*){4})\s*$/i;

/** A user name for people. A JSON Web Token, which the source `jwt` may receive as the user name, is secret and not shown. */
export function shownUsername(username: string | undefined): string | undefined {
  return username !== undefined && JWT.test(username) ? TOKEN : username;
}
