import { useState } from 'preact/hooks';
import { get, request } from '../../app/requests.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs, CopyButton } from '../../parts/copy.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;

/** The programs that may use the interfaces. The secret of a new one is shown once. */
export function Applications() {
  const { value, error, reload } = useLoaded('apps', (signal) => get('/apps', { signal }));
  const [made, setMade] = useState<{ readonly id: string; readonly secret: string }>();
  return (
    <>
      <div class="section-actions">
        <CopyAs request={{ path: '/apps' }} ctl={['apps', 'list']} />
        <Action
          label={A.addApp}
          submit={A.add}
          fields={[
            { name: 'app_id', label: A.appId, isRequired: true },
            { name: 'name', label: A.appName }
          ]}
          done={A.appAdded}
          run={async ({ app_id = '', name = '' }) => {
            const { data } = await request('POST', '/apps', { body: { app_id, name: name || app_id } });
            setMade({ id: app_id, secret: (data as { readonly secret: string }).secret });
            reload();
          }}
        />
      </div>
      {made && (
        <div class="panel" role="status">
          <p>{A.secretOnce(made.id)}</p>
          <p>
            <code>{made.secret}</code> <CopyButton text={made.secret} />
          </p>
          <div class="form-buttons">
            <button type="button" onClick={() => setMade(undefined)}>
              {A.secretKept}
            </button>
          </div>
        </div>
      )}
      <Table
        caption={A.apps}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ app_id }) => app_id}
        empty={A.noApps}
        columns={[
          { head: A.appId, cell: ({ app_id }) => <Name of={app_id} /> },
          { head: A.appName, isWide: true, cell: ({ name }) => <Name of={name} /> },
          { head: T.clients.state, cell: ({ status }) => (status ? A.active : A.inactive) },
          {
            head: '',
            cell: ({ app_id }) => (
              <Removal
                path={`/apps/${encodeURIComponent(app_id)}`}
                title={A.removeApp}
                text={A.removeAppText}
                done={A.appRemoved}
                onDone={reload}
              />
            )
          }
        ]}
      />
    </>
  );
}
