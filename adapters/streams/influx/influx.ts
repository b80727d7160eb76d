import type { PropertyTable, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { lineMaker, readTags, type Tag } from './points.ts';
import { LineWriter, WRITER_PROPERTIES } from './writer.ts';

const WHAT = 'influx sink';
const PRECISIONS: Readonly<Record<string, string>> = { ns: 'ns', us: 'u', ms: 'ms', s: 's' };

const PROPERTIES: PropertyTable = {
  ...WRITER_PROPERTIES,
  username: { type: 'string', about: 'User name at the server.' },
  password: { type: 'string', isSecret: true, about: 'Password at the server.' },
  databasename: { type: 'string', about: 'Name of the database.' },
  database: { type: 'string', about: 'The later name of databasename.' },
  tagkey: { type: 'string', about: 'Name of a tag of all rows.' },
  tagvalue: { type: 'string', about: 'Its value: the name of a column, or else the value itself.' },
  tags: { type: 'any', about: 'Further tags: an object of names and values, which may contain {{.column}}.' }
};

/**
 * The sink `influx`: rows as points of InfluxDB 1, or of a later version by its interface for version 1.
 *
 * All rows of an output are written by one request. What the server refuses for good, such as a field of another type, is not sent again.
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

/** The tag of `tagkey` and `tagvalue`. */
function keyTag({ tagkey, tagvalue }: SinkSetup['properties']): readonly Tag[] {
  if (typeof tagkey !== 'string' || tagkey === '') return [];
  const text = String(tagvalue ?? '');
  return [{ name: tagkey, value: (row) => row[text] ?? text }];
}
