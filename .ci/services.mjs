// Runs a command with servers for its tests: PostgreSQL, MariaDB, Redis and OpenLDAP, from Debian's packages, on free ports of 127.0.0.1 and
// with all their files in a temporary folder. The exit code is that of the command. The command gets these environment variables:
//
// TEST_POSTGRESQL_URL, TEST_MARIADB_URL   a user who may create tables and databases (MariaDB: embermq...); both accept TLS, too
// TEST_REDIS_URL, TEST_REDISS_URL         without and with TLS
// TEST_LDAP_URL, TEST_LDAPS_URL           with the administrator and the password; the first accepts StartTLS. The entry dc=example,dc=com exists
// TEST_LDAP_PASSWORD                      the same password
// TEST_SERVICES_CA, TEST_LDAP_CA          file of the authority that has issued the certificates of all servers
//
// A server that is not installed is left out, with a warning; with REQUIRE_SERVICES=1 this is an error.
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { createServer } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const START_MS = 60_000;
const STOP_MS = 10_000;
const ATTEMPTS = 3;
const HOST = '127.0.0.1';
const BASE = 'dc=example,dc=com';
const DATABASE = 'embermq';

/** The attributes of MQTT users in the documented interface, with object identifiers of the arc for tests, 1.1. */
const MQTT_SCHEMA = [
  ['mqttPublishTopic', 'caseExactMatch', 15],
  ['mqttSubscriptionTopic', 'caseExactMatch', 15],
  ['mqttPubSubTopic', 'caseExactMatch', 15],
  ['isEnabled', 'booleanMatch', 7],
  ['isSuperuser', 'booleanMatch', 7]
].map(([name, rule, syntax], at) => {
  const type = `NAME '${name}' EQUALITY ${rule} SYNTAX 1.3.6.1.4.1.1466.115.121.1.${syntax}`;
  return `attributetype ( 1.1.2.1.${at + 1} ${type} )`;
});
MQTT_SCHEMA.push(
  "objectclass ( 1.1.2.2.1 NAME 'mqttUser' SUP top AUXILIARY",
  '  MAY ( mqttPublishTopic $ mqttSubscriptionTopic $ mqttPubSubTopic $ isEnabled $ isSuperuser ) )'
);

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const PATHS = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];

/** The path of a program; undefined if it is not installed. */
const find = (name, folders = PATHS) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path));

function postgresFolders() {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  return [...versions.sort((a, b) => b - a).map((version) => join(root, version, 'bin')), ...PATHS];
}

/**
 * The servers. `user` runs the server if this is root; `prepare` writes its files and returns its command line;
 * `answers` rejects until it works; `stop` ends it at once, without preserving its files.
 */
const SERVERS = [
  {
    name: 'PostgreSQL',
    package: 'postgresql',
    user: 'postgres',
    stop: 'SIGQUIT', // ends its other processes
    program: () => find('postgres', postgresFolders()),
    async prepare({ program, at, ports: [port], password, execute }) {
      writeFileSync(at('password'), `${password}\n`);
      const initdb = find('initdb', postgresFolders());
      const options = ['--no-sync', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
      await execute(initdb, ['-D', at('data'), '-U', 'embermq', `--pwfile=${at('password')}`, ...options]);
      const settings = {
        listen_addresses: HOST,
        port,
        unix_socket_directories: '',
        fsync: 'off',
        ssl: 'on',
        ssl_cert_file: at('server.crt'),
        ssl_key_file: at('server.key')
      };
      return [
        program,
        '-D',
        at('data'),
        ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
      ];
    },
    async answers({ ports: [port], password }) {
      const { default: pg } = await import('pg');
      const client = new pg.Client({ host: HOST, port, user: 'embermq', password, database: 'postgres' });
      client.on('error', () => {});
      try {
        await client.connect();
        const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
        if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
      } finally {
        await client.end().catch(() => {});
      }
    },
    variables: ({ ports: [port], password }) => ({
      TEST_POSTGRESQL_URL: `postgresql://embermq:${password}@${HOST}:${port}/${DATABASE}`
    })
  },
  {
    name: 'MariaDB',
    package: 'mariadb-server',
    user: 'mysql',
    stop: 'SIGKILL',
    program: () => find('mariadbd'),
    async prepare({ program, at, ports: [port], password, execute }) {
      const install = [
        '--no-defaults',
        `--datadir=${at('data')}`,
        '--auth-root-authentication-method=normal',
        '--skip-test-db'
      ];
      await execute(find('mariadb-install-db'), install);
      const statements = [
        `ALTER USER root@localhost IDENTIFIED BY '${password}'`,
        `CREATE DATABASE ${DATABASE}`,
        `CREATE USER embermq@'%' IDENTIFIED BY '${password}'`,
        `GRANT ALL ON \`${DATABASE}%\`.* TO embermq@'%'`
      ];
      writeFileSync(at('init.sql'), `${statements.join(';\n')};\n`);
      const settings = {
        datadir: at('data'),
        'bind-address': HOST,
        port,
        socket: at('socket'),
        'pid-file': at('pid'),
        'init-file': at('init.sql'),
        'innodb-flush-log-at-trx-commit': 0,
        'character-set-server': 'utf8mb4',
        'ssl-cert': at('server.crt'),
        'ssl-key': at('server.key'),
        'ssl-ca': at('ca.crt')
      };
      return [program, '--no-defaults', ...Object.entries(settings).map(([key, value]) => `--${key}=${value}`)];
    },
    async answers({ ports: [port], password }) {
      const { createConnection } = await import('mysql2/promise');
      const connection = await createConnection({ host: HOST, port, user: 'embermq', password, database: DATABASE });
      try {
        await connection.query('SELECT 1');
      } finally {
        connection.destroy();
      }
    },
    variables: ({ ports: [port], password }) => ({
      TEST_MARIADB_URL: `mysql://embermq:${password}@${HOST}:${port}/${DATABASE}`
    })
  },
  {
    name: 'Redis',
    package: 'redis-server',
    user: 'redis',
    stop: 'SIGKILL',
    program: () => find('redis-server'),
    async prepare({ program, at, ports: [port, tlsPort], password }) {
      const lines = [
        `bind ${HOST}`,
        `port ${port}`,
        `tls-port ${tlsPort}`,
        `tls-cert-file ${at('server.crt')}`,
        `tls-key-file ${at('server.key')}`,
        `tls-ca-cert-file ${at('ca.crt')}`,
        'tls-auth-clients no',
        `dir ${at('.')}`,
        `requirepass ${password}`,
        'save ""',
        'daemonize no'
      ];
      writeFileSync(at('redis.conf'), `${lines.join('\n')}\n`);
      return [program, at('redis.conf')];
    },
    async answers({ ports: [port], password }) {
      const { Redis } = await import('ioredis');
      const redis = new Redis({ host: HOST, port, password, lazyConnect: true, retryStrategy: null });
      redis.on('error', () => {});
      try {
        await redis.connect();
        await redis.ping();
      } finally {
        redis.disconnect();
      }
    },
    variables: ({ ports: [port, tlsPort], password }) => ({
      TEST_REDIS_URL: `redis://:${password}@${HOST}:${port}`,
      TEST_REDISS_URL: `rediss://:${password}@${HOST}:${tlsPort}`
    })
  },
  {
    name: 'OpenLDAP',
    package: 'slapd',
    user: 'openldap',
    stop: 'SIGKILL',
    program: () => find('slapd'),
    async prepare({ program, at, ports: [port, tlsPort], password }) {
      mkdirSync(at('data'));
      writeFileSync(at('mqtt.schema'), `${MQTT_SCHEMA.join('\n')}\n`);
      const lines = [
        ...['core', 'cosine', 'inetorgperson'].map((name) => `include /etc/ldap/schema/${name}.schema`),
        `include ${at('mqtt.schema')}`,
        'modulepath /usr/lib/ldap',
        'moduleload back_mdb',
        `pidfile ${at('pid')}`,
        `TLSCACertificateFile ${at('ca.crt')}`,
        `TLSCertificateFile ${at('server.crt')}`,
        `TLSCertificateKeyFile ${at('server.key')}`,
        'database mdb',
        `suffix "${BASE}"`,
        `rootdn "cn=admin,${BASE}"`,
        `rootpw ${password}`,
        `directory ${at('data')}`,
        'access to attrs=userPassword by self read by anonymous auth by * none',
        'access to * by * read'
      ];
      writeFileSync(at('slapd.conf'), `${lines.join('\n')}\n`);
      const listeners = `ldap://${HOST}:${port} ldaps://${HOST}:${tlsPort}`;
      return [program, '-d', '0', '-f', at('slapd.conf'), '-h', listeners];
    },
    async answers({ ports: [port], password }) {
      const { AlreadyExistsError, Client } = await import('ldapts');
      const client = new Client({ url: `ldap://${HOST}:${port}`, timeout: 5_000, connectTimeout: 5_000 });
      try {
        await client.bind(`cn=admin,${BASE}`, password);
        const entry = { objectClass: ['dcObject', 'organization'], dc: 'example', o: 'Example' };
        await client.add(BASE, entry).catch((error) => {
          if (!(error instanceof AlreadyExistsError)) throw error;
        });
      } finally {
        await client.unbind().catch(() => {});
      }
    },
    variables: ({ ports: [port, tlsPort], password, ca }) => {
      const credentials = `${encodeURIComponent(`cn=admin,${BASE}`)}:${password}`;
      return {
        TEST_LDAP_URL: `ldap://${credentials}@${HOST}:${port}`,
        TEST_LDAPS_URL: `ldaps://${credentials}@${HOST}:${tlsPort}`,
        TEST_LDAP_PASSWORD: password,
        TEST_LDAP_CA: ca
      };
    }
  }
];

if (process.argv[2] === '--clean-up') await cleanUp();
else process.exitCode = await main(process.argv.slice(2));

/** @returns the exit code */
async function main(command) {
  if (command.length === 0) {
    console.error('usage: .ci/services COMMAND [ARGUMENT...]');
    return 2;
  }
  const folder = mkdtempSync(join(tmpdir(), 'services-'));
  const cleaner = startCleaner(folder);
  let child;
  let interrupted;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      interrupted ??= signal;
      child?.kill(signal);
    });
  try {
    const installed = SERVERS.filter((server) => isInstalled(server));
    await makeCertificates(folder);
    const variables = { TEST_SERVICES_CA: join(folder, 'ca.crt') };
    const starts = installed.map((server) => start(server, folder, cleaner, () => interrupted));
    await Promise.allSettled(starts); // the cleaner must know every started process
    Object.assign(variables, ...(await Promise.all(starts)));
    if (interrupted !== undefined) return 128 + constants.signals[interrupted];
    child = spawn(command[0], command.slice(1), { stdio: 'inherit', env: { ...process.env, ...variables } });
    const [code, signal] = await once(child, 'exit');
    return code ?? 128 + constants.signals[signal];
  } catch (error) {
    if (interrupted !== undefined) return 128 + constants.signals[interrupted];
    console.error(`.ci/services: ${error.message}`);
    return error.code === 'ENOENT' ? 127 : 1;
  } finally {
    cleaner.input.end();
    await cleaner.hasEnded;
  }
}

/** @throws Error if the server is required and missing */
function isInstalled(server) {
  if (server.program() !== undefined) return true;
  const text = `${server.name} is not installed (Debian: ${server.package})`;
  if (process.env.REQUIRE_SERVICES === '1') throw new Error(text);
  console.error(`.ci/services: ${text}; its tests will be skipped`);
  return false;
}

/** Start a server. @returns its environment variables, once it answers. @throws Error if it does not */
async function start(server, folder, cleaner, isInterrupted) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryStart(server, join(folder, `${server.package}-${attempt}`), folder, cleaner, isInterrupted);
    } catch (error) {
      // another program may have taken the port meanwhile
      if (attempt === ATTEMPTS || isInterrupted() !== undefined)
        throw new Error(`${server.name} does not start: ${error.message}`);
    }
  }
}

async function tryStart(server, home, folder, cleaner, isInterrupted) {
  const { user, program, prepare, answers, variables, stop } = server;
  const owner = isRoot ? await ownerOf(user) : {};
  const at = (name) => join(home, name);
  const env = { ...process.env, TMPDIR: home }; // a server that runs as another user may not write to the folder of this one
  const execute = (file, args) => run(file, args, { cwd: home, env, ...owner });
  const [ports, password] = [await freePorts(2), randomBytes(16).toString('hex')];
  const facts = { program: program(), at, ports, password, execute, ca: join(folder, 'ca.crt') };
  mkdirSync(home, { mode: 0o700 });
  for (const name of ['ca.crt', 'server.crt', 'server.key']) {
    writeFileSync(at(name), readFileSync(join(folder, name)), { mode: 0o600 });
    if (isRoot) chownSync(at(name), owner.uid, owner.gid);
  }
  if (isRoot) chownSync(home, owner.uid, owner.gid);
  const [file, ...args] = await prepare(facts);
  if (isRoot) await run('chown', ['-R', `${owner.uid}:${owner.gid}`, home]);
  // a separate process group, because the signal of Ctrl+C in a terminal is meant for the command only
  const child = spawn(file, args, { cwd: home, env, ...owner, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let end;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text) => {
      output = (output + text).slice(-4_000);
    });
  child.on('error', (error) => {
    end ??= error.message;
  });
  child.on('exit', (code, signal) => {
    end ??= `it ended with ${signal ?? `exit code ${code}`}\n${output}`;
    cleaner.input.write(`ended ${child.pid}\n`);
  });
  if (child.pid !== undefined) cleaner.input.write(`started ${child.pid} ${stop}\n`);
  const untilMs = performance.now() + START_MS;
  for (;;) {
    try {
      if (end !== undefined) throw new Error(end);
      await answers(facts);
      if (end !== undefined) throw new Error(end); // another server has answered on this port
      return variables(facts);
    } catch (error) {
      const isOver = end !== undefined || isInterrupted() !== undefined || performance.now() > untilMs;
      if (isOver && end === undefined) child.kill(stop);
      if (isOver) throw new Error(end ?? `${error.message}\n${output}`);
      await sleep(100);
    }
  }
}

async function ownerOf(user) {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, user])));
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

/** Ports that are free now, all different. */
async function freePorts(count) {
  const listeners = Array.from({ length: count }, () => createServer().listen(0, HOST));
  await Promise.all(listeners.map((listener) => once(listener, 'listening')));
  const ports = listeners.map((listener) => listener.address().port);
  for (const listener of listeners) listener.close();
  return ports;
}

/** An authority, and a certificate for localhost and 127.0.0.1. */
async function makeCertificates(folder) {
  const extensions = 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n';
  writeFileSync(join(folder, 'extensions'), extensions);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const authority = ['-x509', '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=Tests', '-days', '2'];
  const request = ['-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost'];
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', '2', '-days', '2', '-extfile', 'extensions'];
  await run('openssl', ['req', ...authority, ...key], { cwd: folder });
  await run('openssl', ['req', '-new', ...request, ...key], { cwd: folder });
  await run('openssl', ['x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...signer], { cwd: folder });
  chmodSync(folder, 0o711); // the servers run as other users
}

/** Start a process that cleans up when this one ends, however it ends. */
function startCleaner(folder) {
  const self = fileURLToPath(import.meta.url);
  const stdio = ['pipe', 'inherit', 'inherit'];
  const cleaner = spawn(process.execPath, [self, '--clean-up', folder], { detached: true, stdio });
  cleaner.stdin.on('error', () => {});
  return { input: cleaner.stdin, hasEnded: once(cleaner, 'exit') };
}

/** The work of that process: when its input has ended, end the servers and delete the folder. */
async function cleanUp() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  const running = new Map();
  for await (const line of createInterface(process.stdin)) {
    const [word, pid, signal] = line.split(' ');
    if (word === 'started') running.set(Number(pid), signal);
    else running.delete(Number(pid));
  }
  const send = (signal, pid) => {
    try {
      return process.kill(pid, signal);
    } catch {
      return false; // already ended
    }
  };
  for (const [pid, signal] of running) send(signal, pid);
  const untilMs = performance.now() + STOP_MS;
  const remaining = () => [...running.keys()].filter((pid) => send(0, pid));
  while (remaining().length > 0 && performance.now() < untilMs) await sleep(50);
  for (const pid of remaining()) send('SIGKILL', pid);
  rmSync(process.argv[3], { recursive: true, force: true, maxRetries: 5 });
}
