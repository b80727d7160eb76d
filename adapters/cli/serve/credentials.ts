import { InvalidInput } from '../../../lib/index.ts';
import { type Credentials, readCredentials } from '../../rest/index.ts';
import { listIn } from '../flags.ts';

/**
 * The values of the option `credentials` of an interface under `serve`, in addition to the identities of the broker.
 */
export const SERVED = ['remote', 'none'] as const;

/** Read `--rules-credentials`: one word, or both kinds of identities separated by a comma. @throws InvalidInput OPTION_INVALID */
export function checkWho(value: unknown, field: string): Credentials {
  const words = listIn(value);
  const given = Array.isArray(words) && words.length === 1 ? words[0] : words;
  return readCredentials(given, field, SERVED);
}

/** Read `ID:SECRET`. @throws InvalidInput OPTION_INVALID; its message does not contain the secret */
export function checkApp(value: unknown, field: string): string {
  const text = String(value);
  if (typeof value === 'string' && /^[^:]{1,256}:./s.test(text)) return text;
  const expected = 'ID:SECRET, an id without ":" and a secret';
  throw new InvalidInput('OPTION_INVALID', field, expected, '(not shown)');
}
