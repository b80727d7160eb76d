import type { FieldTable, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { lineMaker, readTags, type Tag } from './points.ts';
import { LineWriter, WRITER_PROPERTIES } from './writer.ts';

const WHAT = 'influx sink';
const PRECISIONS: Readonly<Record<string, string>> = { ns: 'ns', us: 'u', ms: 'ms', s: 's' };

const PROPERTIES: FieldTable = {
  ...WRITER_PROPERTIES,
  username: { type: 'string', about: 'User name at the server.' },
  password: { type: 'string', isSecret: true, about: 'Password at the server.' },
  databasename: { type: 'string', about: 'Name of the database.' },
  database: { type: 'string', about: 'The newer name of databasename.' },
  tagkey: { type: 'string', about: 'Name of a tag of all rows.' },
  tagvalue: { type: 'string', about: 'Value of this tag: the name of a column, otherwise the value itself.' },
  tags: { type: 'any', about: 'Additional tags: an object of names and values, which may contain {{.column}}.' }
};

/**
 * The sink `influx`: rows as points of InfluxDB 1, or of a later version with its compatibility interface.
 *
 * All rows of an output are written in one request. Permanently refused rows, such as those with a field of another
 * type, are not sent again.
 */
export function influxSink(): SinkType {
  return {
    name: 'influx',
    about: 'Writes rows to InfluxDB 1.',
    properties: PROPERTIES,
    open: (setup) => open(setup)
  };
}

function open(setup: SinkSetup): LineWriter {
  const { properties } = setup;
  const { username, password, databasename, database, precision } = properties as Readonly<
    Record<string, string | undefined>
  >;
  const db = databasename || database;
  if (!db) {
    const text = `${WHAT} is missing property databasename`;
    throw new InvalidInput('PROPERTY_INVALID', 'databasename', 'the name of a database', db, text);
  }
  const query = new URLSearchParams({ db, precision: PRECISIONS[precision as string] });
  const credentials = Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64');
  return new LineWriter(setup, {
    what: WHAT,
    path: `/write?${query}`,
    headers: username || password ? { authorization: `Basic ${credentials}` } : {},
    lines: lineMaker(setup, [...keyTag(properties), ...readTags(properties.tags, WHAT)], WHAT)
  });
}

/** The tag from `tagkey` and `tagvalue`. */
function keyTag({ tagkey, tagvalue }: SinkSetup['properties']): readonly Tag[] {
  if (typeof tagkey !== 'string' || tagkey === '') return [];
  const text = String(tagvalue ?? '');
  return [{ name: tagkey, value: (row) => row[text] ?? text }];
}
