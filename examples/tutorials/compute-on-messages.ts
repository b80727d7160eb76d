// The program of the tutorial "Compute on messages": a statement over recorded measurements, joined with a list of devices, and then the same statement
// over live messages.

// #region files
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createBroker } from 'embermq';
import { fileSink, fileSource } from 'embermq/streams/file';

const folder = 'tutorial'; // rules read and write below it, in the folder "files"
await mkdir(`${folder}/files`, { recursive: true });
await writeFile(`${folder}/files/devices.csv`, 'id,place\n7,attic\n8,kiln\n');
await writeFile(
  `${folder}/files/recorded.csv`,
  [
    'at,id,celsius',
    '1000,7,20',
    '3000,8,880',
    '8000,7,22',
    '12000,8,890',
    '13000,7,26',
    '24000,8,700',
    '31000,7,25',
    ''
  ].join('\n')
);
// #endregion

// #region broker
const broker = createBroker({
  streams: {
    dataDir: folder,
    sources: [fileSource()],
    sinks: [fileSink()],
    sourceConfig: { file: { list: { fileType: 'csv', hasHeader: true } } }
  }
});
await broker.start();
const { streams } = broker;
// #endregion

// #region definitions
await streams.create(`CREATE STREAM recorded (at BIGINT, id BIGINT, celsius FLOAT)
  WITH (TYPE="file", DATASOURCE="recorded.csv", CONF_KEY="list", TIMESTAMP="at")`);
await streams.create('CREATE TABLE devices (id BIGINT, place STRING) WITH (DATASOURCE="devices.csv", CONF_KEY="list")');
// #endregion

// #region statement
const means = (stream: string) => `
  SELECT devices.place, avg(celsius) AS mean, count(*) AS n, window_end() / 1000 AS until
  FROM ${stream} INNER JOIN devices ON ${stream}.id = devices.id
  GROUP BY devices.place, TUMBLINGWINDOW(ss, 10)`;
// #endregion

// #region recorded
await new Promise<void>((resolve) =>
  streams.rules.create({
    id: 'means of the record',
    sql: means('recorded'),
    options: { isEventTime: true },
    actions: [
      (rows) => {
        for (const row of rows) console.log(row);
        if (rows.some(({ until }) => until === 30)) resolve();
      },
      { file: { path: 'means.csv', format: 'delimited', sendSingle: true } }
    ]
  })
);
// #endregion

// #region live
await streams.create(
  'CREATE STREAM live (id BIGINT, celsius FLOAT) WITH (DATASOURCE="plant/+/celsius", FORMAT="json")'
);
await streams.rules.create({
  id: 'jumps',
  sql: `SELECT devices.place, celsius, lag(celsius) OVER (PARTITION BY live.id) AS before
        FROM live INNER JOIN devices ON live.id = devices.id
        WHERE celsius > before + 5`,
  actions: [{ mqtt: { topic: 'jumps/{{.place}}', sendSingle: true } }]
});
await streams.rules.create({
  id: 'means',
  sql: means('live'),
  actions: [{ mqtt: { topic: 'means/{{.place}}', sendSingle: true } }]
});
// #endregion

// #region publish
const jump = broker.nextEvent('message.publish', { where: ({ message }) => message.topic.startsWith('jumps/') });
for (const [id, celsius] of [
  [7, 20],
  [8, 880],
  [7, 21],
  [7, 29]
]) {
  await broker.publish(`plant/${id}/celsius`, JSON.stringify({ id, celsius }));
}
const { message } = await jump;
console.log(message.topic, message.payload.toString());
// #endregion

// #region end
await broker.stop();
console.log((await readFile(`${folder}/files/means.csv`, 'utf8')).trimEnd());
await rm(folder, { recursive: true });
// #endregion
// prints:
// { place: 'attic', mean: 21, n: 2, until: 10 }
// { place: 'kiln', mean: 880, n: 1, until: 10 }
// { place: 'kiln', mean: 890, n: 1, until: 20 }
// { place: 'attic', mean: 26, n: 1, until: 20 }
// { place: 'kiln', mean: 700, n: 1, until: 30 }
// jumps/attic {"place":"attic","celsius":29,"before":21}
// attic,21,2,10
// kiln,880,1,10
// kiln,890,1,20
// attic,26,1,20
// kiln,700,1,30
