/** The servers that `.ci/services` starts, with the variable of their URL. */
const SERVICES = {
  postgresql: { name: 'PostgreSQL', variable: 'TEST_POSTGRESQL_URL' },
  mariadb: { name: 'MariaDB', variable: 'TEST_MARIADB_URL' },
  redis: { name: 'Redis', variable: 'TEST_REDIS_URL' },
  ldap: { name: 'OpenLDAP', variable: 'TEST_LDAP_URL' }
};

/** A server for tests. */
interface Service {
  /** The URL with user name and password; empty if the server is missing. */
  readonly url: string;
  /** The reason why the tests are skipped, or false, for the options of `describe` and `it`. */
  readonly skip: string | false;
}

/**
 * A real server for the tests of a file, as `.ci/services COMMAND` starts it. If there is none, the tests are skipped, and one line says
 * how to run them.
 *
 * ```ts
 * const { url, skip } = service('redis');
 * describe('...', { skip }, () => {});
 * ```
 *
 * @throws Error if it is missing and REQUIRE_SERVICES is 1
 */
export function service(which: keyof typeof SERVICES): Service {
  const { name, variable } = SERVICES[which];
  const url = process.env[variable];
  if (url !== undefined && url !== '') return { url, skip: false };
  const reason = `${name} is missing (${variable} is not set); run the tests with ".ci/services npm test -- ..."`;
  if (process.env.REQUIRE_SERVICES === '1') throw new Error(reason);
  process.stderr.write(`\n*** SKIPPED: ${reason}\n\n`);
  return { url: '', skip: reason };
}

/** File of the certificate authority of these servers. */
export function servicesCa(): string {
  return process.env.TEST_SERVICES_CA ?? '';
}
