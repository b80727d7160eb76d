import Type from 'typebox';
import { type ConfigurationDocument, exportConfigurationLines, importConfiguration } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { Download } from '../../download.ts';
import { type Context, type Operation, operation } from '../../operation.ts';

const COUNT = (description: string) => Type.Integer({ description });
const LIST = (description: string) => Type.Optional(Type.Array(Type.Unknown(), { description }));

const DOCUMENT = Type.Object({
  format: Type.String({ description: 'embermq-configuration' }),
  version: Type.Integer({ description: 'Version of the document' }),
  node: Type.Optional(Type.String({ description: 'Name of the node that was exported' })),
  exportedAt: Type.Optional(Type.Integer({ description: 'When, in milliseconds since 1970' })),
  sections: Type.Object(
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
      stoppedSources: LIST('Names of the sources that are stopped')
    },
    { description: 'The entries by section. Sections may be left out' }
  )
});

/** An export of 500,000 users has about this size. */
const MAX_IMPORT_BYTES = 67_108_864;

/**
 * Refuse a document that removes the identity whose credentials the request has: the caller would be locked out.
 * @throws Fault running
 */
function checkCaller({ caller: { kind, id } }: Context, { sections }: ConfigurationDocument): void {
  // the entries have not been checked yet
  const lacks = (entries: readonly object[] | undefined, key: string) =>
    entries?.every((entry) => (entry as Record<string, unknown> | null)?.[key] !== id) === true;
  const isRemoved =
    kind === 'application' ? lacks(sections.applications, 'id') : kind === 'user' && lacks(sections.users, 'name');
  // the user "admin" is never removed
  if (!isRemoved || (kind === 'user' && id === 'admin')) return;
  const message = `the document does not have the ${kind} "${id}", whose credentials this request has, so "replace" would remove it`;
  throw new Fault('running', `${message}: add it to the document, or use other credentials`);
}

/** The configuration that was set at run time, as one document. */
export const CONFIGURATION: readonly Operation[] = [
  operation({
    name: 'export_configuration',
    method: 'GET',
    path: '/x/export',
    descr:
      'Export credentials, access rules, bans, applications, users, features, settings and stopped sources as one document, with hashes only',
    isForAdministrators: true,
    contentType: 'application/json',
    data: DOCUMENT,
    run: ({ broker, appOperations }) => {
      const without = appOperations ? [] : (['applications'] as const);
      return new Download(exportConfigurationLines(broker, { without }), 'application/json');
    }
  }),
  operation({
    name: 'import_configuration',
    method: 'POST',
    path: '/x/import',
    descr: 'Import such a document: check all of it, then change the sections that it has',
    query: Type.Object({
      mode: Type.Optional(
        Type.Enum(['merge', 'replace'], {
          default: 'merge',
          description: 'merge: add what is absent; replace: make the sections equal to the document'
        })
      )
    }),
    body: DOCUMENT,
    maxBodyBytes: MAX_IMPORT_BYTES,
    data: Type.Object({
      sections: Type.Record(
        Type.String(),
        Type.Object({
          added: COUNT('Entries that were absent'),
          replaced: COUNT('Entries that were there, and now are as in the document'),
          removed: COUNT('Entries that were not in the document'),
          skipped: COUNT('Entries that were there, and stay as they are')
        })
      ),
      errors: Type.Array(
        Type.Object({
          section: Type.String({ description: 'The section, the rest of which was left as it is' }),
          entry: Type.String({ description: 'What the entry is about' }),
          message: Type.String({ description: 'Why it could not be changed' })
        })
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
    run: (context, { query, body }) => {
      const { broker, appOperations } = context;
      if (!appOperations && body.sections.applications !== undefined)
        throw new Fault(
          'notPermitted',
          'the document has the section "applications", and operations for applications are switched off here (option appOperations)'
        );
      const document = body as ConfigurationDocument;
      if (query.mode === 'replace') checkCaller(context, document);
      return importConfiguration(broker, document, query);
    }
  })
];
