import { request } from '../../app/requests.ts';
import { flagWords } from '../../model/copy.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Badge } from '../../parts/facts.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { InputError } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;
/** Rules of each kind that are listed. */
const MAX_RULES = 1_000;

interface AclRow {
  readonly clientid?: string;
  readonly username?: string;
  readonly topic: string;
  readonly action: string;
  readonly access: string;
}

const FIELDS: readonly FieldRow[] = [
  {
    name: 'subject',
    label: A.subject,
    type: 'choice',
    choices: [
      ['clientid', T.clients.id],
      ['username', T.clients.user],
      ['all', A.everyone]
    ]
  },
  { name: 'name', label: A.name, help: A.nameHelp },
  {
    name: 'access',
    label: A.access,
    type: 'choice',
    choices: [
      ['allow', A.allow],
      ['deny', A.deny]
    ]
  },
  {
    name: 'action',
    label: T.client.action,
    type: 'choice',
    choices: [
      ['pubsub', A.both],
      ['pub', A.publish],
      ['sub', A.subscribe]
    ]
  },
  { name: 'topic', label: T.topics.filter, isRequired: true }
];

/** Add a rule. @throws InputError if its name and the kind of its name do not fit */
async function add(values: FieldTexts): Promise<unknown> {
  const { subject = 'clientid', name = '' } = values;
  if (subject === 'all' && name !== '') throw new InputError(A.noName);
  if (subject !== 'all' && name === '')
    throw new InputError(A.needsName(subject === 'username' ? A.userName : A.clientId));
  return request('POST', '/acl', { body: bodyOf(values) });
}

function bodyOf({ subject = 'clientid', name = '', access = 'allow', action = 'pubsub', topic = '' }: FieldTexts) {
  return { ...(subject === 'all' ? { all: '$all' } : { [subject]: name }), topic, action, access };
}

/** The flags of `ctl` for the subject of a rule. */
function subjectWords({ clientid, username }: { readonly clientid?: string; readonly username?: string }): string[] {
  return flagWords({ client: clientid, user: username });
}

/** The path of a rule. */
function pathOf({ clientid, username, topic }: AclRow): string {
  const subject =
    clientid !== undefined
      ? `clientid/${encodeURIComponent(clientid)}`
      : username !== undefined
        ? `username/${encodeURIComponent(username)}`
        : '$all';
  return `/acl/${subject}/topic/${encodeURIComponent(topic)}`;
}

/** The access rules that were set at run time. */
export function Rules() {
  const { value, error, reload } = useLoaded<readonly AclRow[]>('acl', async (signal) => {
    const lists = await Promise.all(
      ['/acl/clientid', '/acl/username', '/acl/$all'].map((path) =>
        request('GET', path, { query: { _limit: MAX_RULES }, signal })
      )
    );
    return lists.flatMap(({ data }) => data as readonly AclRow[]);
  });
  return (
    <>
      <div class="section-actions">
        <CopyAs request={{ path: '/acl/clientid' }} ctl={['acl', 'list']} />
        <Action label={A.addRule} submit={A.add} fields={FIELDS} done={A.ruleAdded} run={add} onDone={reload}>
          {(values) => {
            const { topic, action, access } = bodyOf(values);
            const { subject = 'clientid', name = '' } = values;
            return (
              <CopyAs
                request={{ method: 'POST', path: '/acl', body: bodyOf(values) }}
                ctl={['acl', 'add', ...subjectWords({ [subject]: name }), '--', access, action, topic]}
              />
            );
          }}
        </Action>
      </div>
      <Table
        caption={A.rules}
        isStacked
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={(row) => `${pathOf(row)} ${row.action} ${row.access}`}
        empty={A.noRules}
        columns={[
          {
            head: A.subject,
            cell: ({ clientid, username }) =>
              clientid !== undefined ? T.clients.id : username !== undefined ? T.clients.user : A.everyone
          },
          {
            head: A.name,
            cell: ({ clientid, username }) =>
              (clientid ?? username) !== undefined && <Name of={(clientid ?? username) as string} />
          },
          { head: A.access, cell: ({ access }) => <Badge kind={access === 'allow' ? 'good' : 'bad'}>{access}</Badge> },
          { head: T.client.action, cell: ({ action }) => action },
          { head: T.topics.filter, isWide: true, cell: ({ topic }) => <Name of={topic} /> },
          {
            head: '',
            cell: (row) => (
              <Removal
                path={pathOf(row)}
                title={A.removeRule}
                of={row.topic}
                text={A.removeRuleText}
                done={A.ruleRemoved}
                onDone={reload}
              >
                <CopyAs
                  request={{ method: 'DELETE', path: pathOf(row) }}
                  ctl={['acl', 'remove', ...subjectWords(row), '--', row.topic]}
                />
              </Removal>
            )
          }
        ]}
      />
    </>
  );
}
