// The files of the page are compressed with brotli. Browsers ask for brotli only over TLS and on this machine, so the
// others get gzip, which is made once; a client that takes neither gets the text.

import { promisify } from 'node:util';
import type { Answer, Call } from '../rest/index.ts';

type Files = typeof import('./page-files.ts').files;
type Bytes = Uint8Array<ArrayBuffer>;

/** The forms of a file, made when they are asked for. */
interface Forms {
  readonly br: Bytes;
  plain?: Promise<Bytes>;
  gzip?: Promise<Bytes>;
}

const SHELL = 'index.html';
/** The place in the shell at which the path of the mount is inserted. */
const BASE = '<base href="/">';
const FOREVER = 'public, max-age=31536000, immutable';

/** No inline code, no other servers, no frames. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'"
].join('; ');
const SECURITY = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin'
};

const zlib = () => process.getBuiltinModule('node:zlib');

/** The files of the page, and the answers with them. */
export class Assets {
  /** Loaded with the first request: they are large. */
  #files: Promise<Files> | undefined;
  readonly #forms = new Map<string, Forms>();

  /**
   * The answer with a file whose content never changes.
   * @param path below the mount, without a slash at the beginning
   */
  async file(path: string, call: Call): Promise<Answer | undefined> {
    const files = await this.#all();
    if (path === SHELL || !Object.hasOwn(files, path)) return undefined;
    const { type, hash, br } = files[path];
    const headers = { ...SECURITY, 'content-type': type, 'cache-control': FOREVER, etag: `"${hash}"` };
    const forms = this.#forms.get(path) ?? { br: Buffer.from(br, 'base64') };
    this.#forms.set(path, forms);
    const coding = codingFor(call.header('accept-encoding'));
    if (coding === undefined) return { status: 200, headers: varying(headers), body: await plainOf(forms) };
    const body = coding === 'br' ? forms.br : await gzipOf(forms);
    return { status: 200, headers: { ...varying(headers), 'content-encoding': coding }, body };
  }

  /**
   * The shell for the address of a view. Its base is relative, so it is right behind a proxy that removes a part of the
   * path.
   * @param path of the request, below the mount
   */
  async shell(path: string): Promise<Answer> {
    const { [SHELL]: file } = await this.#all();
    const forms = this.#forms.get(SHELL) ?? { br: Buffer.from(file.br, 'base64') };
    this.#forms.set(SHELL, forms);
    const text = Buffer.from(await plainOf(forms)).toString();
    const up = '../'.repeat(path.split('/').length - 2);
    return {
      status: 200,
      headers: { ...SECURITY, 'content-type': file.type, 'cache-control': 'no-cache' },
      body: text.replace(BASE, `<base href="${up === '' ? './' : up}">`)
    };
  }

  #all(): Promise<Files> {
    this.#files ??= import('./page-files.ts').then(({ files }) => files);
    this.#files.catch(() => {
      this.#files = undefined; // the next request tries again
    });
    return this.#files;
  }
}

function varying(headers: Readonly<Record<string, string>>): Record<string, string> {
  return { ...headers, vary: 'accept-encoding' };
}

async function plainOf(forms: Forms): Promise<Bytes> {
  forms.plain ??= promisify(zlib().brotliDecompress)(forms.br);
  return forms.plain;
}

async function gzipOf(forms: Forms): Promise<Bytes> {
  forms.gzip ??= plainOf(forms).then((plain) => promisify(zlib().gzip)(plain));
  return forms.gzip;
}

/** The coding for a header `Accept-Encoding` [RFC 9110 12.5.3]; undefined: none. */
function codingFor(header = ''): 'br' | 'gzip' | undefined {
  const accepted = new Map<string, boolean>();
  for (const part of header.toLowerCase().split(',')) {
    const [name, ...params] = part.split(';').map((one) => one.trim());
    const isRefused = params.some((param) => /^q=0(\.0*)?$/.test(param));
    accepted.set(name, !isRefused);
  }
  return (['br', 'gzip'] as const).find((name) => accepted.get(name) ?? accepted.get('*') ?? false);
}
