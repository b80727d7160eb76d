import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { StreamFormatType } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { readFileFor, type Shell } from '../command.ts';
import { filledOptions } from '../config-values.ts';

/** The contents of .proto files by the names of schemas. */
export type Schemas = Readonly<Record<string, string>>;

/** Maximum number of files in the folder. */
const MAX_FILES = 1000;
const MAX_BYTES = 4_194_304;

/**
 * Read the object `streamsSchemas` of the config file.
 * @throws InvalidInput OPTION_INVALID, CONFIG_INVALID; BrokerError FILE_UNREADABLE
 */
export async function configuredSchemas(given: unknown, config: string | undefined, shell: Shell): Promise<Schemas> {
  if (given === undefined) return {};
  const place = `${config}: streamsSchemas`;
  const expected = 'an object such as {"book": {"fromFile": "book.proto"}}';
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new InvalidInput('OPTION_INVALID', place, expected, given);
  const { filled } = await filledOptions(given as Readonly<Record<string, unknown>>, place, shell);
  for (const [name, text] of Object.entries(filled))
    if (typeof text !== 'string') throw new InvalidInput('OPTION_INVALID', `${place}.${name}`, expected, text);
  return filled as Schemas;
}

/**
 * The format protobuf with the schemas of the config file and of `schemas/protobuf` in the folder of the streams. Those
 * of the config file come first. Without a schema the package `protobufjs` is not loaded, and errors of the format name
 * the expected place of schemas.
 * @param dataDir the folder of the streams
 * @throws BrokerError PACKAGE_MISSING, FILE_UNREADABLE; InvalidInput OPTION_INVALID, which names the schema
 */
export async function protobufOf(
  configured: Schemas,
  dataDir: string | undefined,
  shell: Shell
): Promise<StreamFormatType> {
  const folder = dataDir === undefined ? undefined : join(dataDir, 'schemas', 'protobuf');
  const files = folder === undefined ? {} : await readProtoFiles(folder, shell);
  const inFolder = Object.entries(files).filter(([path]) => !path.includes('/'));
  const named = inFolder.map(([path, text]) => [path.slice(0, -'.proto'.length), text] as const);
  const schemas = { ...Object.fromEntries(named), ...configured };
  const { protobufFormat } = await import('../../streams/protobuf/index.ts');
  const format = await protobufFormat({ schemas, files });
  return Object.keys(schemas).length === 0 ? withoutSchemas(format, folder) : format;
}

/** The format, with an error that says where schemas can be added. */
function withoutSchemas(format: StreamFormatType, folder: string | undefined): StreamFormatType {
  const places = folder === undefined ? [] : [`put NAME.proto into the folder ${folder}`];
  const remedy = [...places, 'set "streamsSchemas" in the config file'].join(', or ');
  return {
    ...format,
    make(setup) {
      if (setup.schemas !== undefined) return format.make(setup);
      const { what, options } = setup;
      const text = `${what}: the format protobuf has no schemas: ${remedy}, and restart`;
      throw new InvalidInput(
        'STREAM_INVALID',
        'SCHEMAID',
        'the name of a schema and of a message',
        options?.SCHEMAID,
        text
      );
    }
  };
}

/** The files of a folder and its subfolders, by relative path with `/`. A missing folder counts as empty. */
async function readProtoFiles(folder: string, shell: Shell): Promise<Record<string, string>> {
  let paths: string[];
  try {
    paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.proto')).sort();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new BrokerError('FILE_UNREADABLE', `cannot read ${folder}: ${(cause as Error).message}`, { cause });
  }
  if (paths.length > MAX_FILES)
    throw new BrokerError('FILE_UNREADABLE', `${folder} has ${paths.length} schemas, more than ${MAX_FILES}`);
  const files: Record<string, string> = {};
  for (const path of paths)
    files[path.replaceAll('\\', '/')] = (await readFileFor(shell, join(folder, path), MAX_BYTES)).toString('utf8');
  return files;
}
