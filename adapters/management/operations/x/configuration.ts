import { type ConfigurationDocument, exportConfigurationLines, importConfiguration } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { any, integer, listOf, objectOf, oneOf, optional, recordOf, text } from '../../../rest/kit/index.ts';
import { checkExposure } from '../../exposure.ts';
import { replyWithLines } from '../../line-reply.ts';
import { type Context, type Operation, operation } from '../../operation.ts';

const COUNT = (description: string) => integer(description);
const LIST = (description: string) => optional(listOf(any(), description));

const DOCUMENT = objectOf({
  format: text('embermq-configuration'),
  version: integer('Version of the document'),
  node: optional(text('Name of the node that was exported')),
  exportedAt: optional(integer('When, in milliseconds since 1970')),
  sections: objectOf(
    {
      clientIds: LIST('Client ids with hashes of their passwords'),
      usernames: LIST('User names with hashes of their passwords'),
      logins: LIST('User names that can be superusers, with hashes of their passwords'),
      acl: LIST('Access rules, the oldest first'),
      banned: LIST('Bans'),
      applications: LIST('Applications with hashes of their secrets'),
      users: LIST('Users of the management interface with hashes of their passwords'),
      features: LIST('Which features are started'),
      settings: LIST('Options that were set at run time: key and value'),
      stoppedSources: LIST('Names of the sources that are stopped'),
      resources: LIST('Resources of rules, with their passwords'),
      rules: LIST('Rules over broker events')
    },
    { description: 'The entries by section. Sections may be left out' }
  )
});

/** Size of an export of about 130,000 users. */
const MAX_IMPORT_BYTES = 67_108_864;

/** The fields that `checkCaller` reads from an unchecked entry. */
type Identity = Readonly<Record<'id' | 'name' | 'hash' | 'isEnabled' | 'expiresAt' | 'tags', unknown>>;

/**
 * Refuse a document that would lock the caller out: one that does not contain the identity of the request, or that
 * changes its credentials or reduces its rights.
 * @throws Fault running
 */
async function checkCaller(context: Context, { sections }: ConfigurationDocument): Promise<void> {
  const { broker, caller } = context;
  const { kind, id } = caller;
  if (kind !== 'application' && kind !== 'user') return;
  const isApplication = kind === 'application';
  const given = (isApplication ? sections.applications : sections.users) as readonly (Identity | null)[] | undefined;
  if (given === undefined) return;
  const key = isApplication ? 'id' : 'name';
  const known = isApplication ? broker.applications.exported() : broker.users.exported();
  const present = find(known as Iterable<unknown> as Iterable<Identity>, key, id);
  const entry = find(given, key, id);
  let why: string | undefined;
  if (entry === undefined) {
    if (!isApplication && id === 'admin') return; // never removed
    why = 'does not have';
  } else if (entry.hash !== present?.hash && !(await isAccepted(context, entry.hash)))
    why = 'has other credentials for';
  else if (entry.isEnabled === false) why = 'disables';
  else if (typeof entry.expiresAt === 'number' && entry.expiresAt <= broker.clock.now())
    why = 'has expired credentials for';
  else if (entry.tags !== present?.tags) why = 'has other tags for';
  if (why === undefined) return;
  const message = `the document ${why} the ${kind} "${id}", whose credentials this request has, so "replace" would lock you out`;
  throw new Fault('running', `${message}: correct the document, or use other credentials`);
}

/** Check whether the caller has the secret of a hash. Invalid hashes are reported by the check of the document. */
async function isAccepted({ isSecret }: Context, hash: unknown): Promise<boolean> {
  try {
    return await isSecret(hash as string);
  } catch {
    return true;
  }
}

function find(entries: Iterable<Identity | null>, key: 'id' | 'name', id: unknown): Identity | undefined {
  for (const entry of entries) if (entry !== null && entry[key] === id) return entry;
  return undefined;
}

/** The options of a document that has not been checked yet. */
function settingsIn({ sections: { settings = [] } }: ConfigurationDocument): [key: unknown, value: unknown][] {
  return (settings as readonly ({ key?: unknown; value?: unknown } | null)[]).map((one) => [one?.key, one?.value]);
}

/** Export and import of the configuration that was set at run time. */
export const CONFIGURATION: readonly Operation[] = [
  operation({
    name: 'export_configuration',
    method: 'GET',
    path: '/x/export',
    ctl: 'export [FILE] --force',
    descr:
      'Export credentials, access rules, bans, applications, users, features, settings and stopped sources as one document, with hashes only',
    isForAdministrators: true,
    contentType: 'application/json',
    data: DOCUMENT,
    run: ({ broker, appOperations }) => {
      const without = appOperations ? [] : (['applications'] as const);
      return replyWithLines(exportConfigurationLines(broker, { without }));
    }
  }),
  operation({
    name: 'import_configuration',
    method: 'POST',
    path: '/x/import',
    ctl: { 'import FILE --mode': 'section added replaced removed skipped' },
    descr: 'Import such a document: check all of it, then change the sections that it has',
    grantsAccess: true,
    query: objectOf({
      mode: optional(
        oneOf(['merge', 'replace'], 'merge: add what is absent; replace: make the sections equal to the document', {
          default: 'merge'
        })
      )
    }),
    body: DOCUMENT,
    maxBodyBytes: MAX_IMPORT_BYTES,
    data: objectOf({
      sections: recordOf(
        objectOf({
          added: COUNT('Entries that were absent'),
          replaced: COUNT('Entries that were there, and now are as in the document'),
          removed: COUNT('Entries that were not in the document'),
          skipped: COUNT('Entries that were there, and stay as they are')
        }),
        'The number of entries by section'
      ),
      errors: listOf(
        objectOf({
          section: text('The section, the rest of which was left as it is'),
          entry: text('The subject of the entry'),
          message: text('Why it could not be changed')
        }),
        'The entries that could not be changed; empty if there are none'
      )
    }),
    example: {
      body: {
        format: 'embermq-configuration',
        version: 1,
        sections: { acl: [{ access: 'allow', action: 'publish', topic: 'sensors/%c/#' }] }
      },
      data: { sections: { acl: { added: 1, replaced: 0, removed: 0, skipped: 0 } }, errors: [] }
    },
    audited: ({ query: { mode = 'merge' }, body }) => ({ mode, sections: Object.keys(body.sections) }),
    run: async (context, { query, body }) => {
      const { broker, appOperations } = context;
      if (!appOperations && body.sections.applications !== undefined)
        throw new Fault(
          'notPermitted',
          'the document has the section "applications", and operations for applications are switched off here (option appOperations)'
        );
      const document = body as ConfigurationDocument;
      if (query.mode === 'replace') await checkCaller(context, document);
      checkExposure(broker, settingsIn(document));
      return importConfiguration(broker, document, query);
    }
  })
];
