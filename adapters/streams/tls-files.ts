import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { FieldTable } from '../../lib/adapter.ts';
import { InvalidInput } from '../../lib/index.ts';
import type { OutgoingTls } from '../outgoing/index.ts';
import { fileFault } from './file-fault.ts';

/** The properties that name TLS files. */
export const TLS_FILE_PROPERTIES: FieldTable = {
  certificationPath: { type: 'string', about: 'File of the certificate of the client, PEM.' },
  privateKeyPath: { type: 'string', about: 'File of the private key of the certificate, PEM.' },
  rootCaPath: { type: 'string', about: 'File of the certificate authorities, PEM, instead of those of Node.' }
};

/** Remedy if the certificate of a server is not trusted. */
export const TRUST_REMEDY = 'name the file of its authorities in the property rootCaPath';
/** The remedy if certificates need not be verified. */
export const TRUST_OR_SKIP_REMEDY = `${TRUST_REMEDY}, or set insecureSkipVerify to true to accept any certificate`;

const FILES = { cert: 'certificationPath', key: 'privateKeyPath', ca: 'rootCaPath' } as const;

/**
 * Read the files that `TLS_FILE_PROPERTIES` name.
 * @param dataDir the base of relative paths; undefined: the working directory
 * @param what for messages: `rest sink`
 * @throws InvalidInput PROPERTY_INVALID
 */
export async function readTlsFiles(
  properties: Readonly<Record<string, unknown>>,
  dataDir: string | undefined,
  what: string
): Promise<OutgoingTls> {
  const tls: OutgoingTls = {};
  for (const [option, name] of Object.entries(FILES) as [keyof typeof FILES, string][]) {
    const path = properties[name];
    if (typeof path !== 'string' || path === '') continue;
    try {
      tls[option] = await readPem(resolve(dataDir ?? '.', path));
    } catch (error) {
      const text = `${what}: property ${name}: ${path}: ${fileFault(error)}`;
      throw new InvalidInput('PROPERTY_INVALID', name, 'a file that can be read', path, text);
    }
  }
  return tls;
}

/** Maximum size of a file with certificates or a key. */
const MAX_BYTES = 1_048_576;

/** @throws Error if the file is not regular, or too large; errors of the file system */
async function readPem(path: string): Promise<Buffer> {
  // a plain open() of a pipe waits for a writer, and a device such as /dev/zero has no end
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error('it is not a file');
    if (stats.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}
