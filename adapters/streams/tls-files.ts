import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InvalidInput, type PropertyTable } from '../../lib/index.ts';
import type { OutgoingTls } from '../outgoing/index.ts';
import { fileFault } from './file-fault.ts';

/** The properties that name files for TLS. */
export const TLS_FILE_PROPERTIES: PropertyTable = {
  certificationPath: { type: 'string', about: 'File of the certificate of the client, PEM.' },
  privateKeyPath: { type: 'string', about: 'File of its private key, PEM.' },
  rootCaPath: { type: 'string', about: 'File of the certificate authorities, PEM, instead of those of Node.' }
};

const FILES = { cert: 'certificationPath', key: 'privateKeyPath', ca: 'rootCaPath' } as const;

/**
 * Read the files that `TLS_FILE_PROPERTIES` name.
 * @param dataDir where relative paths begin; undefined: in the working directory
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
      tls[option] = await readFile(resolve(dataDir ?? '.', path));
    } catch (error) {
      const text = `${what}: property ${name}: ${path}: ${fileFault(error)}`;
      throw new InvalidInput('PROPERTY_INVALID', name, 'a file that can be read', path, text);
    }
  }
  return tls;
}
