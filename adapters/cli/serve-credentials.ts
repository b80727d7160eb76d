import { type Credentials, readCredentials } from '../rest/index.ts';

/** The words that the option `credentials` of an interface may be under `serve`, beside the identities of the broker. */
export const SERVED = ['remote', 'none'] as const;

/** Read `--rules-credentials`: one word, or both kinds of identities separated by a comma. @throws InvalidInput OPTION_INVALID */
export function checkWho(value: unknown, field: string): Credentials {
  const words = typeof value === 'string' ? value.split(',').map((word) => word.trim()) : value;
  const given = Array.isArray(words) && words.length === 1 ? words[0] : words;
  return readCredentials(given, field, SERVED);
}
