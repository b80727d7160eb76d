import { get, post, request } from '../../app/requests.ts';
import { session } from '../../app/session.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
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

/** The people who may log in to the console and to the management interface. */
export function Users() {
  const { value, error, reload } = useLoaded('users', (signal) => get('/users', { signal }));
  return (
    <>
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
        />
      </div>
      <Table
        caption={A.users}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ username }) => username}
        empty={A.noUsers}
        columns={[
          { head: T.login.id, isWide: true, cell: ({ username }) => <Name of={username} /> },
          {
            head: A.role,
            cell: ({ tags }) => (tags === 'administrator' ? T.shell.administrator : tags || T.shell.viewer)
          },
          {
            head: '',
            cell: ({ username, tags }) => (
              <div class="head-actions">
                <Action
                  label={A.changeRole}
                  kind="small"
                  fields={[ROLE]}
                  initial={{ tags: tags === 'administrator' ? tags : 'viewer' }}
                  text={A.changeRoleText}
                  done={A.userChanged}
                  run={({ tags: role = 'viewer' }) =>
                    request('PUT', '/users/{name}', { params: { name: username }, body: { tags: role } })
                  }
                  onDone={reload}
                />
                <Action
                  label={A.newPassword}
                  kind="small"
                  fields={[PASSWORD]}
                  text={A.newPasswordText}
                  done={A.userChanged}
                  run={({ password = '' }) =>
                    request('PUT', '/x/users/{name}/password', { params: { name: username }, body: { password } })
                  }
                />
                {username !== session.value?.id && (
                  <Removal
                    path={`/users/${encodeURIComponent(username)}`}
                    title={A.removeUser}
                    text={A.removeUserText}
                    done={A.userRemoved}
                    onDone={reload}
                  />
                )}
              </div>
            )
          }
        ]}
      />
    </>
  );
}
