// The files that are written from rows: the types of events; of the REST interfaces the OpenAPI documents, the types of the clients, and the requests
// of `ctl`. They are not in git. Tests, builds and `npm run check` write them first: in 0.8 s if a source that the rows import has changed, otherwise in 20 ms.
//
// A file is written in .cache and renamed, and only if its content changes. So concurrent runs do not interfere, no build sees part of a file, and
// what was built from the file stays up to date.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { typesOf } from './client-types.mjs';
import { ctlActionsOf } from './ctl-actions.mjs';
import { eventTypesOf } from './event-types.mjs';

const root = join(import.meta.dirname, '..');
const STATE = '.cache/generated/state.json';
const OWN_SOURCES = [
  '.ci/generated.mjs',
  '.ci/client-types.mjs',
  '.ci/ctl-actions.mjs',
  '.ci/event-types.mjs',
  'package.json',
  'package-lock.json'
];

/** Write the files that are missing or out of date. */
export async function writeGenerated() {
  if (isCurrent()) return;
  const started = Date.now();
  const bundle = join(root, `.cache/generated/rows-${process.pid}.mjs`);
  try {
    const { metafile } = await build({
      absWorkingDir: root,
      stdin: {
        contents: `
          export { createBroker, EVENTS } from './lib/index.ts';
          export { EVENT_ABOUT, EVENT_FIELD_ABOUT } from './lib/events/event-texts.ts';
          export { managementApi } from './adapters/management/index.ts';
          export { OPERATIONS as managementRows } from './adapters/management/operations/index.ts';
          export { streamsApi } from './adapters/streams-api/index.ts';
          export { OPERATIONS as streamsRows } from './adapters/streams-api/operations/all.ts';`,
        resolveDir: root
      },
      outfile: bundle,
      bundle: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      metafile: true
    });
    const files = filesOf(await import(pathToFileURL(bundle).href));
    for (const [path, text] of Object.entries(files)) if (contentOf(path) !== text) writeWhole(join(root, path), text);
    const sources = [...OWN_SOURCES, ...Object.keys(metafile.inputs).filter((path) => path !== '<stdin>')];
    // a source that is saved meanwhile may have been read before
    if (sources.some((path) => statSync(join(root, path)).mtimeMs >= started)) return;
    const stamps = [...sources, ...Object.keys(files)].map((path) => [path, stampOf(path)]);
    writeWhole(join(root, STATE), JSON.stringify(Object.fromEntries(stamps)));
  } finally {
    rmSync(bundle, { force: true });
  }
}

/** The content of the files, by their paths. */
function filesOf(modules) {
  const { createBroker, managementApi, managementRows, streamsApi, streamsRows } = modules;
  const broker = createBroker();
  const of = (revision) => managementApi(broker, { revision }).openapi();
  const [earlier, later, hosted, streams] = [of('earlier'), of('later'), of('hosted'), streamsApi(broker).openapi()];
  const laterRows = managementRows.filter((row) => row.in === undefined || row.in.includes('later'));
  const json = (document) => `${JSON.stringify(document, null, 1)}\n`;
  return {
    'adapters/management/openapi/earlier.json': json(earlier),
    'adapters/management/openapi/later.json': json(later),
    'adapters/management/openapi/hosted.json': json(hosted),
    'adapters/management/client/earlier.ts': typesOf(earlier, 'EarlierOperations'),
    'adapters/management/client/later.ts': typesOf(later, 'LaterOperations'),
    'adapters/cli/ctl/requests.ts': ctlActionsOf([...laterRows, ...streamsRows]),
    'adapters/streams-api/openapi/streams.json': json(streams),
    'adapters/streams-api/client/operations.ts': typesOf(streams, 'StreamsOperations'),
    'lib/events/event-types.ts': eventTypesOf(modules.EVENTS, modules.EVENT_ABOUT, modules.EVENT_FIELD_ABOUT)
  };
}

function isCurrent() {
  const stamps = contentOf(STATE);
  return stamps !== undefined && Object.entries(JSON.parse(stamps)).every(([path, stamp]) => stampOf(path) === stamp);
}

/** Returns the time and the size of a file; undefined if there is none. */
function stampOf(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found && `${found.mtimeMs} ${found.size}`;
}

function contentOf(path) {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch {
    return undefined;
  }
}

/** Write a file. Other processes see either the previous one or all of it. */
export function writeWhole(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  const partial = join(root, '.cache/partial', `${process.pid}-${basename(path)}`);
  mkdirSync(dirname(partial), { recursive: true });
  writeFileSync(partial, content);
  renameSync(partial, path);
}
