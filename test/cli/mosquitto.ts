import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

const isInstalled = spawnSync('mosquitto_pub', ['--help']).error === undefined;
// Set in CI, where these tests must not be skipped.
const isRequired = process.env.REQUIRE_MOSQUITTO === '1';

/** Options for a test that runs mosquitto's clients. It is skipped, with a reason, if they are not installed. */
export const withMosquitto = {
  skip: !isInstalled && !isRequired && 'mosquitto_pub and mosquitto_sub are not installed (Debian: mosquitto-clients)'
};

/** Run `mosquitto_pub`, `mosquitto_sub` or `mosquitto_rr` and wait for its exit. @returns its standard output */
export async function mosquitto(command: 'pub' | 'sub' | 'rr', args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(`mosquitto_${command}`, args, { timeout: 20_000 });
  return stdout;
}
