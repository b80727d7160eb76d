import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { shownUrl } from '../../lib/adapter.ts';
import { BrokerError, type Clock, InvalidInput, StateError } from '../../lib/index.ts';
import { HttpClient, withDeadline } from '../outgoing/index.ts';
import { messageOf } from './errors.ts';

/** Limits of a download. */
export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly maxRedirects: number;
  readonly clock: Clock;
  readonly closing: AbortSignal;
}

/** The first bytes of the record at the end of a ZIP archive, and the length of the longest one with its comment. */
const END_RECORD = Buffer.from('PK\x05\x06');
const MAX_END_BYTES = 22 + 65_535;
const REDIRECTS = [301, 302, 303, 307, 308];

/** Read an archive. @param limits failed: called with the reason if it cannot be read @throws InvalidInput PLUGIN_FILE_INVALID; BrokerError PLUGIN_DOWNLOAD_FAILED */
export async function readArchive(
  file: string,
  limits: DownloadLimits & { readonly failed: (reason: string) => void }
): Promise<Buffer> {
  const url = archiveUrl(file);
  try {
    const isFile = url.protocol === 'file:';
    return checkArchive(isFile ? await readFile(url, limits.maxBytes) : await fetchBytes(url, limits));
  } catch (error) {
    if (error instanceof StateError) throw error; // the plugins are closed
    limits.failed(`${shown(file)}: ${messageOf(error)}`);
    // the same text for each reason: the answer must not reveal which files exist, or the answers of servers that only
    // this machine can reach
    if (url.protocol === 'file:') throw uriError(file, error);
    const text = `fail to download file ${shown(file)}: no archive was received`;
    throw new BrokerError('PLUGIN_DOWNLOAD_FAILED', `${text}; the log of the broker has the reason`, { cause: error });
  }
}

/**
 * Refuse data that is not a ZIP archive by the record at its end, as the reader of archives does.
 * @throws Error
 */
function checkArchive(bytes: Buffer): Buffer {
  if (bytes.subarray(-MAX_END_BYTES).lastIndexOf(END_RECORD) < 0) throw new Error('it is not a ZIP archive');
  return bytes;
}

function archiveUrl(file: string): URL {
  if (file.length > 8192 || !URL.canParse(file)) throw uriError(file);
  const url = new URL(file);
  const isKnown = ['http:', 'https:', 'file:'].includes(url.protocol);
  if (!isKnown || !(url.pathname.endsWith('.zip') || file.endsWith('.zip'))) throw uriError(file);
  return url;
}

function uriError(file: string, cause?: unknown): InvalidInput {
  const expected = 'the http, https or file URL of an archive that can be read, which ends with ".zip"';
  const error = new InvalidInput('PLUGIN_FILE_INVALID', 'file', expected, shown(file), `invalid uri ${shown(file)}`);
  if (cause !== undefined) error.cause = cause;
  return error;
}

/** A URL for messages. */
function shown(file: string): string {
  const text = shownUrl(file);
  return text.length > 500 ? `${text.slice(0, 497)}...` : text;
}

async function readFile(url: URL, maxBytes: number): Promise<Buffer> {
  // a plain open() would wait for the writer of a pipe
  const handle = await open(fileURLToPath(url), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error('it is not a file');
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    const bytes = Buffer.alloc(stats.size);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    if (bytesRead !== bytes.length) throw new Error('the file was changed while it was read');
    return bytes;
  } finally {
    await handle.close();
  }
}

function tooLarge(maxBytes: number): Error {
  return new Error(`it is larger than ${maxBytes} bytes, the option maxArchiveSize`);
}

/**
 * Get the content of a URL, following redirects.
 * @throws Error
 */
export function fetchBytes(url: URL, limits: DownloadLimits): Promise<Buffer> {
  const late = () => new Error(`it took longer than ${limits.timeoutMs} ms`);
  return withDeadline({ clock: limits.clock, ms: limits.timeoutMs, late, outers: [limits.closing] }, async (signal) => {
    let next = url;
    for (let redirects = 0; ; redirects++) {
      // credentials are only sent to their origin
      const login = loginOf(next) ?? (next.origin === url.origin ? loginOf(url) : undefined);
      const answer = await ask(next, login, limits.maxBytes, signal);
      if (answer.status === 200) return answer.body;
      if (!REDIRECTS.includes(answer.status)) throw new HttpStatusError(answer.status);
      if (redirects === limits.maxRedirects) throw new Error(`there are more than ${redirects} redirects`);
      next = redirected(next, answer.headers.location);
    }
  });
}

/** The answer of a server is not 200. */
export class HttpStatusError extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the server answered with status ${status}`);
    this.status = status;
  }
}

function loginOf({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(login).toString('base64')}`;
}

async function ask(url: URL, login: string | undefined, maxBodyBytes: number, signal: AbortSignal) {
  const headers: Record<string, string> = { connection: 'close', accept: '*/*' };
  if (login !== undefined) headers.authorization = login;
  const plain = new URL(`${url.origin}${url.pathname}${url.search}`);
  const client = new HttpClient(plain, { maxSockets: 1, maxBodyBytes });
  try {
    return await client.send({ method: 'GET', headers }, signal);
  } finally {
    client.close();
  }
}

/** The target of a redirect. */
function redirected(from: URL, location: unknown): URL {
  if (typeof location !== 'string' || !URL.canParse(location, from.href))
    throw new Error('a redirect has no valid location');
  const to = new URL(location, from);
  if (to.protocol !== 'https:' && to.protocol !== 'http:')
    throw new Error(`a redirect leads to the scheme ${to.protocol}`);
  if (from.protocol === 'https:' && to.protocol === 'http:') throw new Error('a redirect leads from https to http');
  return to;
}
