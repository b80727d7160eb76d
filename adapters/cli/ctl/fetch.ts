import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as requestOver } from 'node:https';
import { Readable } from 'node:stream';
import { InvalidInput } from '../../../lib/index.ts';
import type { ManagementClientOptions } from '../../management/client/index.ts';
import { UNTRUSTED_CERTIFICATE } from '../../outgoing/index.ts';

/** Statuses of answers without a body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * A `fetch` that trusts only the certificates of a file. The one of Node 20 takes no certificates.
 * @param ca in PEM
 * @throws InvalidInput OPTION_INVALID if the file contains no certificate
 */
export function fetchTrusting(ca: Buffer, file: string): NonNullable<ManagementClientOptions['fetch']> {
  checkCertificate(ca, file);
  return async (request, { signal }) => {
    const { method, url, headers } = request;
    const body = Buffer.from(await request.arrayBuffer());
    const sent = requestOver(url, { method, headers: Object.fromEntries(headers), ca, signal });
    if (body.length > 0) sent.setHeader('content-length', body.length);
    sent.end(body.length > 0 ? body : undefined);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const status = answer.statusCode as number;
    const found = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, `${value}`]);
    return new Response(WITHOUT_BODY.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>), {
      status,
      headers: found
    });
  };
}

function checkCertificate(ca: Buffer, file: string): void {
  try {
    new X509Certificate(ca);
  } catch {
    throw new InvalidInput(
      'OPTION_INVALID',
      '--ca',
      'a certificate in PEM',
      file,
      `--ca: ${file} has no certificate (PEM)`
    );
  }
}

/** Error codes for addresses without a server, or that do not exist. */
const UNREACHABLE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH']);

/**
 * The remedy for a request that failed because of the certificate of the server, or because no server was found; `''`
 * for other errors.
 * @param urlFlag the flag with the URL
 */
export function connectionRemedy(error: unknown, urlFlag: string): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { readonly code?: unknown };
    if (typeof code === 'string' && UNTRUSTED_CERTIFICATE.has(code))
      return '; to trust it, name its file, or the one of the authority that has issued it, with --ca FILE';
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `; use a name or address of the certificate in ${urlFlag}`;
    if (typeof code === 'string' && UNREACHABLE.has(code))
      return `; start a broker with "embermq serve", or say with ${urlFlag} where it is`;
  }
  return '';
}
