import { get, post, request } from '../../app/requests.ts';
import { session } from '../../app/session.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Badge } from '../../parts/facts.tsx';
import type { FieldRow } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;
const ROLE: FieldRow = {
  name: 'tags',
  label: A.role,
  type: 'choice',
  choices: [
    ['viewer', T.shell.viewer],
    ['administrator', T.shell.administrator]
  ],
  help: A.roleHelp
};
const PASSWORD: FieldRow = { name: 'password', label: T.login.password, type: 'secret', isRequired: true };

/** The user that the broker never deletes, so that a broker has at least one. */
const PERMANENT = 'admin';

const ADMINISTRATOR = 'administrator';

/** The person who looks at the page. */
const isSelf = (name: string) => name === session.value?.id;

/** The people who may log in to the console and to the management interface. */
export function Users() {
  const { value, error, reload } = useLoaded('users', (signal) => get('/users', { signal }));
  return (
    <>
      <p class="aside">{A.usersAbout}</p>
      <div class="section-actions">
        <CopyAs request={{ path: '/users' }} ctl={['users', 'list']} />
        <Action
          label={A.addUser}
          submit={A.add}
          fields={[{ name: 'username', label: T.login.id, isRequired: true }, PASSWORD, ROLE]}
          done={A.userAdded}
          run={({ username = '', password = '', tags = 'viewer' }) =>
            post('/users', { body: { username, password, tags } })
          }
          onDone={reload}
        >
          {({ username = '', tags = 'viewer' }) => (
            <CopyAs
              request={{ method: 'POST', path: '/users', body: { username, password: '<password>', tags } }}
              ctl={['users', 'add', `--tags=${tags}`, '--', username]}
            />
          )}
        </Action>
      </div>
      <Table
        caption={A.users}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ username }) => username}
        empty={A.noUsers}
        columns={[
          {
            head: T.login.id,
            isWide: true,
            cell: ({ username }) => (
              <>
                <Name of={username} /> {isSelf(username) && <Badge kind="quiet">{A.you}</Badge>}
              </>
            )
          },
          {
            head: A.role,
            cell: ({ tags }) => (tags === 'administrator' ? T.shell.administrator : tags || T.shell.viewer)
          },
          {
            head: '',
            cell: (row) => {
              const isOnly = value?.filter(({ tags }) => tags === ADMINISTRATOR).length === 1;
              return <UserActions row={row} isLast={isOnly && row.tags === ADMINISTRATOR} onDone={reload} />;
            }
          }
        ]}
      />
    </>
  );
}

function UserActions({
  row: { username, tags },
  isLast,
  onDone
}: {
  readonly row: { readonly username: string; readonly tags: string };
  /** There is no other administrator. */
  readonly isLast: boolean;
  readonly onDone: () => void;
}) {
  const lastAdministrator = isLast ? A.isLast : undefined;
  return (
    <div class="head-actions row-actions">
      <Action
        label={A.changeRole}
        kind="small"
        fields={[ROLE]}
        initial={{ tags: tags === ADMINISTRATOR ? tags : 'viewer' }}
        text={isSelf(username) ? A.selfText : A.changeRoleText}
        prevented={lastAdministrator}
        done={A.userChanged}
        run={({ tags: role = 'viewer' }) =>
          request('PUT', '/users/{name}', { params: { name: username }, body: { tags: role } })
        }
        onDone={onDone}
      />
      <Action
        label={A.newPassword}
        submit={T.form.set}
        kind="small"
        fields={[PASSWORD]}
        text={isSelf(username) ? A.selfText : A.newPasswordText}
        done={A.userChanged}
        run={({ password = '' }) =>
          request('PUT', '/x/users/{name}/password', { params: { name: username }, body: { password } })
        }
      >
        <CopyAs
          request={{
            method: 'PUT',
            path: `/x/users/${encodeURIComponent(username)}/password`,
            body: { password: '<password>' }
          }}
          ctl={['users', 'password', '--', username]}
        />
      </Action>
      <Removal
        path={`/users/${encodeURIComponent(username)}`}
        title={A.removeUserOf(username)}
        text={A.removeUserText}
        done={A.userRemoved}
        onDone={onDone}
        prevented={isSelf(username) ? A.isSelf : username === PERMANENT ? A.isPermanent : lastAdministrator}
      >
        <CopyAs
          request={{ method: 'DELETE', path: `/users/${encodeURIComponent(username)}` }}
          ctl={['users', 'remove', '--', username]}
        />
      </Removal>
    </div>
  );
}
