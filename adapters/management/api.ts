import { checkBroker, passwordCheckOf } from '../../lib/adapter.ts';
import { type Broker, InvalidInput } from '../../lib/index.ts';
import {
  basicCredentials,
  Fault,
  type HttpMounts,
  type LoginSettings,
  mountsOf,
  type OpenApiDocument,
  type Service
} from '../rest/index.ts';
import { openApi, type RestInterface, RestService } from '../rest/kit/index.ts';
import { documentStyle } from './openapi.ts';
import { type ManagementMembers, operation } from './operation.ts';
import { OPERATIONS } from './operations/index.ts';
import { type ManagementOptions, type ManagementSettings, readManagementOptions } from './options.ts';
import { PagePositions } from './page-positions.ts';
import { Reply } from './reply.ts';
import { REVISION_ROWS } from './revisions.ts';
import { EventStreams } from './streams/event-stream.ts';
import { makeManagementStyle } from './style.ts';

/** The management interface of a broker, ready to be mounted. */
export interface ManagementApi extends HttpMounts {
  /**
   * The OpenAPI 3.1 document of the interface, as `GET {prefix}/openapi.json` answers it.
   * @param prefix of several revisions, the one with this prefix. Default: the first one
   * @throws InvalidInput OPTION_INVALID if none has the prefix
   */
  openapi(prefix?: string): OpenApiDocument;
}

/**
 * Make the management interface of a broker.
 *
 * ```ts
 * const api = managementApi(broker, { revision: 'later', prefix: '/api/v4' });
 * app.use(api.node); // Express; the other routes of the app stay as they are
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function managementApi(broker: Broker, options: ManagementOptions = {}): ManagementApi {
  checkBroker(broker, 'managementApi');
  return managementApis(broker, [options]);
}

/**
 * Make several revisions of the management interface for one server. A path belongs to the one with the longest prefix, so `/api/v4/clients`
 * is not taken for a path below `/api`.
 *
 * ```ts
 * const api = managementApis(broker, [
 *   { revision: 'earlier' },
 *   { revision: 'later', prefix: '/api/v4' },
 *   { revision: 'hosted', unmatched: 'next' }
 * ]);
 * ```
 * @throws InvalidInput OPTION_INVALID, also if two have the same prefix; OPTION_UNKNOWN
 */
export function managementApis(broker: Broker, list: readonly ManagementOptions[]): ManagementApi {
  checkBroker(broker, 'managementApis');
  const services = list.map((options) => restService(broker, options));
  return {
    ...mountsOf(broker, services),
    openapi: (prefix = services[0]?.prefixes[0]) => {
      const found = services.find(({ prefixes }) => prefixes.includes(prefix));
      if (found !== undefined) return found.document;
      const all = services.flatMap(({ prefixes }) => prefixes.map((one) => `"${one}"`));
      throw new InvalidInput('OPTION_INVALID', 'prefix', `one of ${all.join(', ')}`, prefix);
    }
  };
}

/**
 * Make a service of the management interface, to be mounted beside others.
 * @param logins those of the mount
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function managementService(broker: Broker, options: ManagementOptions, logins: LoginSettings): Service {
  return restService(broker, options, logins);
}

function restService(
  broker: Broker,
  options: ManagementOptions,
  logins?: LoginSettings
): RestService<ManagementMembers> {
  return new RestService(broker, management(broker, { ...readManagementOptions(options), ...logins }));
}

/** The JSON text of documents: 260 kB, which take 4.5 ms. */
const texts = new WeakMap<OpenApiDocument, string>();

function textOf(document: OpenApiDocument): string {
  const text = texts.get(document) ?? JSON.stringify(document);
  texts.set(document, text);
  return text;
}

const DOCUMENT = operation({
  name: 'openapi',
  method: 'GET',
  path: '/openapi.json',
  descr: 'The OpenAPI document of this interface',
  run: ({ document }) => new Reply(textOf(document()))
});

function management(
  broker: Broker,
  settings: ManagementSettings & Partial<LoginSettings>
): RestInterface<ManagementMembers> {
  const { revision, appOperations, errors, optionSource } = settings;
  const isOriginal = errors === 'original';
  const rows = OPERATIONS.filter((row) => row.in === undefined || row.in.includes(revision)).map((row) =>
    isOriginal ? { ...row, query: row.originalQuery ?? row.query, body: row.originalBody ?? row.body } : row
  );
  const operations = rows.filter((row) => appOperations || row.isForApplications !== true);
  const members = {
    revision: REVISION_ROWS[revision],
    operations,
    isOriginal,
    appOperations,
    streams: new EventStreams(broker, settings.maxEventStreams),
    positions: new PagePositions(broker),
    optionSource
  };
  return {
    name: 'management',
    settings,
    operations: [...rows, DOCUMENT],
    style: makeManagementStyle(settings, () => broker.directory.nextSlice()),
    refusal: (row) =>
      appOperations || row.isForApplications !== true
        ? undefined
        : new Fault(
            'notPermitted',
            'operations that show or change applications are switched off here (option appOperations)'
          ),
    contextOf: (shared) => ({
      ...shared,
      ...members,
      isSecret: async (hash) => {
        const { secret } = basicCredentials(shared.call.header('authorization') ?? '') ?? {};
        return secret !== undefined && passwordCheckOf(hash)(Buffer.from(secret));
      }
    }),
    document: () => openApi(operations, documentStyle(settings, broker.version))
  };
}
