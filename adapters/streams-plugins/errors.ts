import { BrokerError } from '../../lib/index.ts';

/**
 * The error for an archive that cannot be installed.
 * @param cause describes the fault of the archive: `a.so: it is a link`
 */
export function archiveError(cause: string, options?: { readonly cause: unknown }): BrokerError {
  return new BrokerError('PLUGIN_ARCHIVE_INVALID', `fail to install plugin: invalid zip file: ${cause}`, options);
}

/** The error for unusable content of an archive. */
export function installError(cause: string, options?: { readonly cause: unknown }): BrokerError {
  return new BrokerError('PLUGIN_INSTALL_FAILED', `fail to install plugin: ${cause}`, options);
}

/** The message of a thrown value, which plugins control; at most 1000 characters. */
export function messageOf(error: unknown): string {
  let text: string;
  try {
    text = error instanceof Error ? error.message : String(error);
  } catch {
    text = 'a value that cannot be shown';
  }
  return text.length > 1000 ? `${text.slice(0, 997)}...` : text;
}
