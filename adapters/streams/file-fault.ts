import { getSystemErrorMap } from 'node:util';

/** Describe why a file cannot be used, without its absolute path: callers may not know where the data folder is. */
export function fileFault(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  const [, text] = (errno === undefined ? undefined : getSystemErrorMap().get(errno)) ?? [];
  return text ?? message;
}
