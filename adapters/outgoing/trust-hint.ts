import { BrokerError } from '../../lib/index.ts';

/** The codes of Node for certificates that are not signed by a known authority. */
export const UNTRUSTED_CERTIFICATE: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED'
]);
/** The codes of certificates that are valid for another name or time. */
const UNFIT: ReadonlySet<string> = new Set(['ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);

/**
 * Add the remedy to an error about the certificate of a server.
 * @param remedy a way to trust the certificate, such as `name its authority in rootCaPath`
 * @param errorCode the code of the new error
 * @returns other errors unchanged
 */
export function withTrustHint<E>(error: E, remedy: string, errorCode = 'HTTP_FAILED'): E | BrokerError {
  if (!(error instanceof Error)) return error;
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException;
  if (code === undefined || !(UNTRUSTED_CERTIFICATE.has(code) || UNFIT.has(code))) return error;
  return new BrokerError(errorCode, `${error.message}; ${remedy}`, { cause: error });
}
