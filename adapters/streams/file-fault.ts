import { getSystemErrorMap } from 'node:util';

/**
 * Describe why a file cannot be used, without its absolute path: callers must not learn the location of the data
 * folder.
 */
export function fileFault(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  const [, text] = (errno === undefined ? undefined : getSystemErrorMap().get(errno)) ?? [];
  return text ?? message;
}
