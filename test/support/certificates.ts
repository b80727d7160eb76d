import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its key, as PEM and as files. */
interface Identity {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * A small certificate authority and the certificates it has issued. They are created during the tests, so that none in the repository can
 * expire.
 */
export interface Certificates extends Disposable {
  readonly directory: string;
  readonly ca: Identity;
  /** For `localhost` and `127.0.0.1`. */
  readonly server: Identity;
  /** Another certificate for the same names, to replace the first. */
  readonly renewed: Identity;
  /** O=Plant, CN=device-1 */
  readonly client: Identity;
  /** O=Plant, CN=device-2; it is in the revocation list. */
  readonly revoked: Identity;
  /** O=Plant, without a common name. */
  readonly nameless: Identity;
  /** CN=device-1, from an untrusted authority. */
  readonly stranger: Identity;
  /** The revocation list before the first revocation. */
  readonly emptyCrl: string;
  readonly crl: string;
  readonly crlFile: string;
}

/** The processes of a test run share one authority, because `openssl` has to be started 17 times for it. Its certificates are valid for two days. */
const SHARED_FOR_MS = 12 * 60 * 60 * 1000;
const CACHE = join(import.meta.dirname, '../../.cache');
const SHARED = `certificates-${Math.floor(Date.now() / SHARED_FOR_MS)}`;

/**
 * Returns certificates in a new folder.
 * @param isOther true for another authority than that of other calls
 * @throws if there is no command `openssl`
 */
export function makeCertificates(isOther = false): Certificates {
  const directory = mkdtempSync(join(tmpdir(), 'certificates-'));
  if (isOther) issueCertificates(directory);
  else cpSync(shared(), directory, { recursive: true });
  const read = (name: string) => readFileSync(join(directory, name), 'utf8');
  const identity = (name: string): Identity => ({
    cert: read(`${name}.crt`),
    key: read(`${name}.key`),
    certFile: join(directory, `${name}.crt`),
    keyFile: join(directory, `${name}.key`)
  });
  return {
    directory,
    ca: identity('ca'),
    server: identity('server'),
    renewed: identity('renewed'),
    client: identity('client'),
    revoked: identity('revoked'),
    nameless: identity('nameless'),
    stranger: identity('stranger'),
    emptyCrl: read('empty.crl'),
    crl: read('ca.crl'),
    crlFile: join(directory, 'ca.crl'),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true })
  };
}

/** Returns the folder of the shared authority. The process that first has a complete one provides it. */
function shared(): string {
  const folder = join(CACHE, SHARED);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE).filter((name) => /^certificates-\d+$/.test(name)))
    rmSync(join(CACHE, name), { recursive: true, force: true });
  const fresh = mkdtempSync(join(CACHE, 'certificates-new-'));
  issueCertificates(fresh);
  try {
    renameSync(fresh, folder);
  } catch {
    rmSync(fresh, { recursive: true });
  }
  return folder;
}

/** Creates the certificates with the `openssl` command. */
function issueCertificates(directory: string): void {
  const at = (name: string) => join(directory, name);
  const openssl = (...args: string[]) => {
    try {
      execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
    } catch (error) {
      const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: Buffer };
      if (code === 'ENOENT')
        throw new Error(
          'these tests make certificates with the "openssl" command; install it (apt-get install openssl)'
        );
      throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
    }
  };
  writeFileSync(at('openssl.cnf'), CONFIGURATION);
  writeFileSync(at('index.txt'), '');
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-config', 'openssl.cnf'];
  const authority = (name: string): void => {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
    openssl('req', '-x509', ...newKey, ...files, '-subj', `/CN=${name}`, '-days', '2', '-extensions', 'authority');
  };
  let serial = 1;
  const issue = (name: string, subject: string, section: 'server' | 'client', issuer = 'ca'): void => {
    const extensions = ['-extfile', 'openssl.cnf', '-extensions', section];
    const signer = ['-CA', `${issuer}.crt`, '-CAkey', `${issuer}.key`, '-set_serial', String(++serial), '-days', '2'];
    openssl('req', '-new', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject);
    openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signer, ...extensions);
  };
  authority('ca');
  authority('elsewhere');
  issue('server', '/CN=localhost', 'server');
  issue('renewed', '/CN=localhost', 'server');
  issue('client', '/O=Plant/CN=device-1', 'client');
  issue('revoked', '/O=Plant/CN=device-2', 'client');
  issue('nameless', '/O=Plant', 'client');
  issue('stranger', '/CN=device-1', 'client', 'elsewhere');
  openssl('ca', '-config', 'openssl.cnf', '-gencrl', '-out', 'empty.crl');
  openssl('ca', '-config', 'openssl.cnf', '-revoke', 'revoked.crt');
  openssl('ca', '-config', 'openssl.cnf', '-gencrl', '-out', 'ca.crl');
}

const CONFIGURATION = `
[req]
distinguished_name = name
prompt = no
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
subjectAltName = DNS:localhost, IP:127.0.0.1
extendedKeyUsage = serverAuth
[client]
extendedKeyUsage = clientAuth
[ca]
default_ca = small
[small]
database = index.txt
certificate = ca.crt
private_key = ca.key
default_md = sha256
default_crl_days = 2
`;
