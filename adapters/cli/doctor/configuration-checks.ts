// The checks of the configuration, of the files that it names, and of who may connect. What serve refuses is a fault
// here; what it accepts and an operator may regret is a warning.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { isSecretByName, parseAclFile, shownUrl } from '../../../lib/adapter.ts';
import type { Transport } from '../../net/index.ts';
import { zoneOf } from '../serve/exposure.ts';
import {
  type Check,
  type Finding,
  fault,
  GROUP_AND_OTHERS,
  OTHERS,
  ok,
  quoted,
  type Subject,
  shownMode,
  warning
} from './check.ts';

const DAY_MS = 86_400_000;
/** A certificate that ends within this time is to be renewed now. */
const RENEW_MS = 30 * DAY_MS;

/** Codes of errors that other checks report. */
const EXPOSED = ['ANONYMOUS_EXPOSED', 'MANAGEMENT_EXPOSED'];
const OF_PACKAGES = 'PACKAGE_MISSING';

/** A private key in PEM. The value of `key` is one, or the path of a file. */
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY/;
/** Passwords of examples and of other brokers. */
const WELL_KNOWN = new Set(['public', 'admin', 'password', 'secret', 'changeme', 'test', '123456', 'embermq', 'mqtt']);

function checkConfiguration({ problems, config, settings }: Subject): Finding[] {
  const own = problems.filter(({ code }) => !EXPOSED.includes(code) && code !== OF_PACKAGES);
  const findings = own.map(({ text }) => fault(text));
  if (settings === undefined)
    findings.push(
      fault('the rest of the configuration was not examined', 'Correct the error, and run the doctor again.')
    );
  const what = config === undefined ? 'flags and environment are valid; there is no config file' : `${config} is valid`;
  return findings.length > 0 ? findings : [ok(what)];
}

async function checkSecrets({ config, content, machine }: Subject): Promise<Finding[]> {
  if (config === undefined || machine.platform === 'win32') return [];
  const found = await stat(config).catch(() => undefined);
  if (found === undefined) return [];
  const secret = secretIn(content);
  if (secret === undefined) return [ok(`${config} has no secrets`)];
  const mode = shownMode(found.mode);
  if ((found.mode & OTHERS) === 0) return [ok(`${config} has secrets, and not every user can read it (mode ${mode})`)];
  return [
    fault(
      `${config} has the secret ${secret}, and every user of this machine can read it (mode ${mode})`,
      `chmod 600 ${quoted(config)}`
    )
  ];
}

/** The place of the first value that looks like a secret; values from files and variables are none. */
function secretIn(value: unknown, place = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const at = place === '' ? key : `${place}.${key}`;
    if (typeof item === 'string' && isSecret(key, item)) return at;
    const nested = secretIn(item, at);
    if (nested !== undefined) return nested;
  }
  return undefined;
}

/** Tell whether an option has a secret: by its name, as a private key, or in a URL. */
function isSecret(name: string, value: string): boolean {
  const isNamed = name === 'app' || (isSecretByName(name, value) && !/file$|^password_?Hash$/i.test(name));
  if (PRIVATE_KEY.test(value) || (isNamed && value !== '')) return true;
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(value)) return false;
  const [place, query = ''] = value.split(/[?#](.*)/s);
  const isInQuery = ([key, text]: [string, string]) =>
    (key === 'key' || isSecretByName(key, text)) && text !== '' && !text.startsWith('${');
  return shownUrl(place) !== place || [...new URLSearchParams(query)].some(isInQuery);
}

/** Packages that a section of the config file needs when it contains a word, and that are imported only when the broker has started. */
const NEEDED: readonly { readonly section: string; readonly word: RegExp; readonly name: string }[] = [
  { section: 'auth', word: /"kind":"jwt"/, name: 'jose' },
  { section: 'auth', word: /"kind":"ldap"/, name: 'ldapts' },
  { section: 'streams', word: /kafka/i, name: 'kafkajs' },
  { section: 'streams', word: /redis/i, name: 'ioredis' },
  { section: 'streams', word: /protobuf/i, name: 'protobufjs' },
  { section: 'streams', word: /"cron"/, name: 'croner' },
  { section: 'rewrite', word: /"pattern":/, name: 're2js' }
];

async function checkPackages(subject: Subject): Promise<Finding[]> {
  const { problems, content, shell } = subject;
  const findings = problems
    .filter(({ code }) => code === OF_PACKAGES)
    .map(({ text }) => fault(text, /npm install [\w@/-]+/.exec(text)?.[0]));
  const needed = NEEDED.filter(({ section, word }) => word.test(JSON.stringify(content[section]) ?? '')).map(
    ({ section, name }) => ({ name, what: `"${section}" of the config file` })
  );
  for (const { kind, path } of accessFiles(subject)) {
    const text = await read(path, shell).then(String, () => '');
    if (kind === 'acl-file' && /\.ya?ml$/.test(path)) needed.push({ name: 'yaml', what: path });
    if (kind === 'password-file' && /^[^#:]+:\$2[aby]\$/m.test(text)) needed.push({ name: 'bcryptjs', what: path });
  }
  for (const { name, what } of needed) {
    const isThere = await shell.importPackage(name).then(
      () => true,
      () => false
    );
    if (!isThere) findings.push(fault(`${what} needs the package ${name}, which is missing`, `npm install ${name}`));
  }
  return findings.length > 0 ? findings : [ok('no package that the configuration needs is missing')];
}

/** A file of users or of access rules. */
interface AccessFile {
  readonly kind: 'password-file' | 'acl-file';
  readonly path: string;
}

function accessFiles({ settings, content }: Subject): AccessFile[] {
  const { passwordFile, aclFile } = settings?.own ?? {};
  const list = Array.isArray(content.auth) ? (content.auth as Partial<AccessFile & { file: string }>[]) : [];
  return [
    ...(passwordFile === undefined ? [] : [{ kind: 'password-file' as const, path: passwordFile }]),
    ...(aclFile === undefined ? [] : [{ kind: 'acl-file' as const, path: aclFile }]),
    ...list.flatMap((entry) => {
      const { kind, file } = entry ?? {};
      const isFile = (kind === 'password-file' || kind === 'acl-file') && typeof file === 'string';
      return isFile ? [{ kind, path: file }] : [];
    })
  ];
}

/** Read a regular file of any size: the doctor waits for no pipe. */
function read(path: string, shell: Subject['shell']): Promise<Buffer> {
  return shell.readFile(path, Number.MAX_SAFE_INTEGER);
}

async function checkAccessFiles(subject: Subject): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { kind, path } of accessFiles(subject)) {
    try {
      const text = (await read(path, subject.shell)).toString();
      const { mode } = await stat(path);
      if (kind === 'acl-file') {
        if (!/\.ya?ml$/.test(path)) parseAclFile(text);
        findings.push(ok(`${path} has valid access rules`));
      } else {
        const lines = text.split(/\r?\n/);
        const bad = lines.findIndex((line) => line.trim() !== '' && !/^#|^[^:]+:\$/.test(line));
        if (bad >= 0)
          findings.push(fault(`${path}: line ${bad + 1} is not "name:HASH"`, `embermq passwd ${quoted(path)} NAME`));
        else if (subject.machine.platform !== 'win32' && (mode & OTHERS) !== 0)
          findings.push(
            warning(
              `every user of this machine can read ${path}, which has hashes of passwords`,
              `chmod 600 ${quoted(path)}`
            )
          );
        else findings.push(ok(`${path} has valid users`));
      }
    } catch (error) {
      findings.push(fault(`${path}: ${(error as Error).message}`));
    }
  }
  return findings;
}

function checkExposure({ problems, settings }: Subject): Finding[] {
  const findings = problems
    .filter(({ code }) => EXPOSED.includes(code))
    .map(({ text }) => fault(text, 'Bind a loopback address, or require credentials.'));
  if (settings === undefined || findings.length > 0) return findings;
  const { broker, sources, listeners, management, streamsApi, own } = settings;
  const zones = broker.zones as
    | Readonly<Record<string, { allowAnonymous?: unknown; allow_anonymous?: unknown }>>
    | undefined;
  for (const { transport, http, label } of listeners) {
    const host = transport.exposedHost;
    const zone = zones?.[zoneOf(transport)];
    const allowed = zone?.allowAnonymous ?? zone?.allow_anonymous ?? broker.allowAnonymous;
    if (http === undefined && host !== undefined && /^(true|on|1)$/.test(String(allowed)))
      findings.push(
        warning(`anyone can connect from other machines at ${host} (${label ?? transport.kind}): allowAnonymous is on`)
      );
  }
  const who = { management: management.options.credentials, 'stream rules': streamsApi.options.credentials };
  for (const [name, credentials] of Object.entries(who))
    if (credentials === 'none')
      findings.push(
        warning(
          `the interface of ${name} at ${own.httpHost} asks for no credentials: every user and program of this machine can use it`
        )
      );
  if (findings.length > 0) return findings;
  const asks = sources.some(({ isAuthenticating }) => isAuthenticating);
  return [
    ok(
      asks
        ? 'clients must authenticate'
        : 'clients need no password, and only this machine, or clients with an identity in TLS, can connect'
    )
  ];
}

function checkCredentials({ settings }: Subject): Finding[] {
  const app = settings?.own.app;
  if (app === undefined) return [];
  const secret = app.slice(app.indexOf(':') + 1);
  const id = app.slice(0, app.indexOf(':'));
  if (WELL_KNOWN.has(secret.toLowerCase()) || secret === id)
    return [fault(`the secret of the application "${id}" (--app) is one that everybody tries first`)];
  if (secret.length < 12) return [warning(`the secret of the application "${id}" (--app) is short`)];
  return [ok(`the application "${id}" (--app) has an own secret`)];
}

const UNUSABLE = 'Correct the option of the listener, or its file; the broker does not start with it.';

async function checkCertificates(subject: Subject): Promise<Finding[]> {
  const { settings, unusable } = subject;
  const texts = new Set(unusable.values());
  const findings = [...texts].map((text) => fault(text, UNUSABLE));
  const seen = new Set<string>();
  for (const { transport } of settings?.listeners ?? []) {
    for (const { certFile, keyFile, passphrase } of certificatesOf(transport)) {
      if (certFile === undefined || keyFile === undefined || seen.has(`${certFile}\n${keyFile}`)) continue;
      seen.add(`${certFile}\n${keyFile}`);
      const found = await checkCertificate({ certFile, keyFile, passphrase }, subject);
      // what makes the listener unusable is reported above
      findings.push(...found.filter(({ isUnusable }) => !isUnusable || !unusable.has(transport)));
    }
  }
  return findings;
}

function certificatesOf({ tls }: Transport) {
  return tls === undefined ? [] : [tls, ...tls.serverNames.values()];
}

interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly passphrase: string | undefined;
}

interface CertificateFinding extends Finding {
  /** True if a listener cannot be opened with these files. */
  readonly isUnusable?: boolean;
}

async function checkCertificate(
  { certFile, keyFile, passphrase }: CertificateFiles,
  { machine, shell }: Subject
): Promise<CertificateFinding[]> {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(await read(certFile, shell));
  } catch (error) {
    return [{ ...fault(`${certFile}: ${(error as Error).message}`), isUnusable: true }];
  }
  const findings: CertificateFinding[] = [];
  const [from, to] = [certificate.validFrom, certificate.validTo].map((text) => Date.parse(text));
  const end = new Date(to).toISOString().slice(0, 10);
  const nowMs = machine.now();
  if (to < nowMs) findings.push(fault(`${certFile} has expired on ${end}`));
  else if (from > nowMs)
    findings.push(fault(`${certFile} is valid only from ${new Date(from).toISOString()}`, 'Check the clock.'));
  else if (to - nowMs < RENEW_MS) findings.push(warning(`${certFile} expires on ${end}`));
  else findings.push(ok(`${certFile} is valid until ${end}`));
  try {
    const key = createPrivateKey({
      key: await read(keyFile, shell),
      ...(passphrase === undefined ? {} : { passphrase })
    });
    if (!certificate.checkPrivateKey(key))
      findings.push({
        ...fault(`${keyFile} is not the key of ${certFile}`, 'Use the key that the certificate was issued for.'),
        isUnusable: true
      });
    const { mode } = await stat(keyFile);
    if (machine.platform !== 'win32' && (mode & OTHERS) !== 0)
      findings.push(
        fault(
          `every user of this machine can read the private key ${keyFile} (mode ${shownMode(mode)})`,
          `chmod 600 ${quoted(keyFile)}`
        )
      );
    else if (machine.platform !== 'win32' && (mode & GROUP_AND_OTHERS & ~0o040) !== 0)
      findings.push(
        warning(
          `other users can change the private key ${keyFile} (mode ${shownMode(mode)})`,
          `chmod 600 ${quoted(keyFile)}`
        )
      );
  } catch (error) {
    findings.push({ ...fault(`${keyFile}: ${(error as Error).message}`), isUnusable: true });
  }
  return findings;
}

/** The checks of the configuration. */
export const CONFIGURATION_CHECKS: readonly Check[] = [
  {
    id: 'config',
    title: 'The configuration is valid',
    remedy:
      'Correct the option; embermq help serve and embermq help options list flags, the page of the command the lists of a config file.',
    run: checkConfiguration
  },
  {
    id: 'config-secrets',
    title: 'Not every user can read a config file with secrets',
    remedy: 'chmod 600 FILE, or take secrets from elsewhere: { "fromFile": PATH }, { "fromEnv": NAME }.',
    run: checkSecrets
  },
  {
    id: 'packages',
    title: 'Optional packages that the configuration needs are installed',
    remedy: 'npm install PACKAGE',
    run: checkPackages
  },
  {
    id: 'access-files',
    title: 'Files of users and of access rules are valid and protected',
    remedy: 'Correct the file; the broker does not start with it.',
    run: checkAccessFiles
  },
  {
    id: 'exposure',
    title: 'No client can connect from other machines without credentials',
    remedy: 'Require passwords (--password-file, or "auth" in the config file) or client certificates (--ca).',
    run: checkExposure
  },
  {
    id: 'credentials',
    title: 'The secret of `--app` is not a well-known one',
    remedy: 'Use a long random secret: openssl rand -base64 32',
    run: checkCredentials
  },
  {
    id: 'certificates',
    title: 'Certificates are valid for 30 days or more, and only their owner can read the keys',
    remedy: 'Renew the certificate; the broker reads the new file within a minute, or on SIGHUP.',
    run: checkCertificates
  }
];
