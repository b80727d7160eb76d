import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { BrokerError, type Clock, InvalidInput } from '../../lib/index.ts';
import { HttpClient } from '../outgoing/index.ts';
import { withDeadline } from './deadline.ts';
import { messageOf } from './errors.ts';

/** Limits of a download. */
export interface DownloadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly maxRedirects: number;
  readonly clock: Clock;
  readonly closing: AbortSignal;
}

const REDIRECTS = [301, 302, 303, 307, 308];

/** Read an archive. @throws InvalidInput PLUGIN_FILE_INVALID; BrokerError PLUGIN_DOWNLOAD_FAILED */
export async function readArchive(file: string, limits: DownloadLimits): Promise<Buffer> {
  const url = archiveUrl(file);
  try {
    if (url.protocol === 'file:') return await readFile(url, file, limits.maxBytes);
    return await fetchBytes(url, limits);
  } catch (error) {
    if (error instanceof InvalidInput) throw error;
    throw new BrokerError('PLUGIN_DOWNLOAD_FAILED', `fail to download file ${shown(file)}: ${messageOf(error)}`, {
      cause: error
    });
  }
}

function archiveUrl(file: string): URL {
  if (file.length > 8192 || !URL.canParse(file)) throw uriError(file);
  const url = new URL(file);
  const isKnown = ['http:', 'https:', 'file:'].includes(url.protocol);
  if (!isKnown || !(url.pathname.endsWith('.zip') || file.endsWith('.zip'))) throw uriError(file);
  return url;
}

function uriError(file: string): InvalidInput {
  const expected = 'the http, https or file URL of an archive that exists, which ends with ".zip"';
  return new InvalidInput('PLUGIN_FILE_INVALID', 'file', expected, shown(file), `invalid uri ${shown(file)}`);
}

/** A URL for messages, without a password. */
function shown(file: string): string {
  const text = file.length > 500 ? `${file.slice(0, 497)}...` : file;
  return text.replace(/\/\/[^/@]*@/, '//***@');
}

async function readFile(url: URL, file: string, maxBytes: number): Promise<Buffer> {
  let handle: FileHandle;
  try {
    // a pipe would let an ordinary open() wait for a writer
    handle = await open(fileURLToPath(url), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EMFILE') throw error;
    throw uriError(file);
  }
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw uriError(file);
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

/** Get what a URL has, over redirects. @throws Error */
export function fetchBytes(url: URL, limits: DownloadLimits): Promise<Buffer> {
  const late = () => new Error(`it took longer than ${limits.timeoutMs} ms`);
  return withDeadline(limits.clock, limits.timeoutMs, limits.closing, late, async (signal) => {
    let next = url;
    for (let redirects = 0; ; redirects++) {
      // credentials go to their own origin only
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
  const client = new HttpClient(plain, {}, { maxSockets: 1, maxBodyBytes });
  try {
    return await client.send({ method: 'GET', path: url.pathname + url.search, headers, body: undefined }, signal);
  } finally {
    client.close();
  }
}

/** Where a redirect leads. */
function redirected(from: URL, location: unknown): URL {
  if (typeof location !== 'string' || !URL.canParse(location, from.href))
    throw new Error('a redirect has no valid location');
  const to = new URL(location, from);
  if (to.protocol !== 'https:' && to.protocol !== 'http:')
    throw new Error(`a redirect leads to the scheme ${to.protocol}`);
  if (from.protocol === 'https:' && to.protocol === 'http:') throw new Error('a redirect leads from https to http');
  return to;
}
