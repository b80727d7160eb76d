import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';

/** The option `sparkplug`. */
export interface SparkplugOptions {
  /** Set the timestamp of an NDEATH to the time at which the broker publishes it to subscribers. Default false. */
  readonly ndeathTimestamp?: boolean;
}

/** Read the option `sparkplug`. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
export function readSparkplug(given: SparkplugOptions | undefined): SparkplugOptions | undefined {
  if (given === undefined) return undefined;
  checkObject(given, 'sparkplug');
  checkNames(given, ['ndeathTimestamp'], 'sparkplug');
  const { ndeathTimestamp = false } = given;
  if (typeof ndeathTimestamp !== 'boolean')
    throw new InvalidInput('OPTION_INVALID', 'sparkplug.ndeathTimestamp', 'true or false', ndeathTimestamp);
  return given;
}
