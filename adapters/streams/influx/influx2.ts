import type { FieldTable, SinkSetup, SinkType } from '../../../lib/adapter.ts';
import { lineMaker, readTags } from './points.ts';
import { LineWriter, WRITER_PROPERTIES } from './writer.ts';

const WHAT = 'influx2 sink';

const PROPERTIES: FieldTable = {
  ...WRITER_PROPERTIES,
  token: { type: 'string', isSecret: true, about: 'Token of the server.' },
  org: { type: 'string', required: true, about: 'Name of the organization.' },
  bucket: { type: 'string', required: true, about: 'Name of the bucket.' },
  tags: { type: 'any', about: 'Tags: an object of names and values, which may contain {{.column}}.' },
  useLineProtocol: {
    type: 'boolean',
    default: false,
    about:
      'The output is already in the line protocol, made by dataTemplate; measurement, tags and fields are not used.'
  }
};

/** The sink `influx2`: rows as points of InfluxDB 2 or later. See `influxSink`. */
export function influx2Sink(): SinkType {
  return {
    name: 'influx2',
    about: 'Writes rows to InfluxDB 2 or later.',
    properties: PROPERTIES,
    open: (setup) => open(setup)
  };
}

function open(setup: SinkSetup): LineWriter {
  const { org, bucket, token, precision, tags, useLineProtocol } = setup.properties;
  const query = new URLSearchParams({ org: String(org), bucket: String(bucket), precision: String(precision) });
  return new LineWriter(setup, {
    what: WHAT,
    path: `/api/v2/write?${query}`,
    headers: token ? { authorization: `Token ${token}` } : {},
    lines:
      useLineProtocol === true
        ? ({ bytes }) => [bytes.toString().trimEnd()]
        : lineMaker(setup, readTags(tags, WHAT), WHAT)
  });
}
