import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
 * A small certificate authority and the certificates it has issued. They are created in each run, so that none in the repository can
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

/**
 * Creates the certificates with the `openssl` command.
 * @throws if there is no such command
 */
export function makeCertificates(): Certificates {
  const directory = mkdtempSync(join(tmpdir(), 'certificates-'));
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
  const authority = (name: string): Identity => {
    const subject = `/CN=${name}`;
    openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
      '-subj',
      subject,
      '-days',
      '2',
      '-extensions',
      'authority'
    );
    return identity(name);
  };
  const identity = (name: string): Identity => ({
    cert: readFileSync(at(`${name}.crt`), 'utf8'),
    key: readFileSync(at(`${name}.key`), 'utf8'),
    certFile: at(`${name}.crt`),
    keyFile: at(`${name}.key`)
  });
  let serial = 1;
  const issue = (name: string, subject: string, section: 'server' | 'client', issuer = 'ca'): Identity => {
    const extensions = ['-extfile', 'openssl.cnf', '-extensions', section];
    const signer = ['-CA', `${issuer}.crt`, '-CAkey', `${issuer}.key`, '-set_serial', String(++serial), '-days', '2'];
    openssl('req', '-new', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject);
    openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signer, ...extensions);
    return identity(name);
  };
  const ca = authority('ca');
  authority('elsewhere');
  const certificates = {
    directory,
    ca,
    server: issue('server', '/CN=localhost', 'server'),
    renewed: issue('renewed', '/CN=localhost', 'server'),
    client: issue('client', '/O=Plant/CN=device-1', 'client'),
    revoked: issue('revoked', '/O=Plant/CN=device-2', 'client'),
    nameless: issue('nameless', '/O=Plant', 'client'),
    stranger: issue('stranger', '/CN=device-1', 'client', 'elsewhere')
  };
  openssl('ca', '-config', 'openssl.cnf', '-gencrl', '-out', 'empty.crl');
  openssl('ca', '-config', 'openssl.cnf', '-revoke', 'revoked.crt');
  openssl('ca', '-config', 'openssl.cnf', '-gencrl', '-out', 'ca.crl');
  return {
    ...certificates,
    emptyCrl: readFileSync(at('empty.crl'), 'utf8'),
    crl: readFileSync(at('ca.crl'), 'utf8'),
    crlFile: at('ca.crl'),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true })
  };
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
