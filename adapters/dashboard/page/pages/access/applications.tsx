import { useState } from 'preact/hooks';
import { get, request } from '../../app/requests.ts';
import { absoluteTime, inputTime, timeText } from '../../model/format.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs, CopyButton } from '../../parts/copy.tsx';
import { Badge } from '../../parts/facts.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;
const SECRET_BYTES = 24;

interface Application {
  readonly app_id: string;
  readonly name: string;
  readonly desc: string;
  readonly status: boolean;
  /** In seconds since 1970; the string `undefined`: never. */
  readonly expired: number | string;
}
interface Shown {
  readonly id: string;
  readonly secret: string;
}

const NAMED: readonly FieldRow[] = [
  { name: 'name', label: A.appName },
  { name: 'desc', label: A.appDescription },
  { name: 'expired', label: A.appExpires, type: 'time', help: A.appExpiresHelp }
];
const ENABLED: FieldRow = {
  name: 'status',
  label: T.clients.state,
  type: 'choice',
  choices: [
    ['true', A.active],
    ['false', A.inactive]
  ]
};

/** The fields of a form as the interface takes them. */
function bodyOf({ name = '', desc = '', expired = '', status }: FieldTexts) {
  return {
    name,
    desc,
    expired: expired === '' ? 'undefined' : Math.floor(Date.parse(absoluteTime(expired)) / 1000),
    ...(status !== undefined && { status: status === 'true' })
  };
}

/** The programs that may use the interfaces. The secret of a new one is shown once. */
export function Applications() {
  const { value, error, reload } = useLoaded<readonly Application[]>(
    'apps',
    async (signal) => (await get('/apps', { signal })) as readonly Application[]
  );
  const [made, setMade] = useState<Shown>();
  return (
    <>
      <p class="aside">{A.appsAbout}</p>
      <div class="section-actions">
        <CopyAs request={{ path: '/apps' }} ctl={['apps', 'list']} />
        <Add
          onMade={(shown) => {
            setMade(shown);
            reload();
          }}
        />
      </div>
      {made && <SecretOnce shown={made} onStored={() => setMade(undefined)} />}
      <Table
        caption={A.apps}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ app_id }) => app_id}
        empty={A.noApps}
        columns={[
          {
            head: A.appId,
            cell: ({ app_id }) => (
              <span class="short-name">
                <Name of={app_id} />
              </span>
            )
          },
          {
            head: A.appName,
            isWide: true,
            cell: ({ name, desc }) => (
              <>
                {name !== '' && <Name of={name} />}
                {desc !== '' && (
                  <p class="row-about">
                    <Name of={desc} />
                  </p>
                )}
              </>
            )
          },
          { head: T.clients.state, cell: (row) => <StateOf row={row} /> },
          {
            head: A.appExpires,
            isMinor: true,
            cell: ({ expired }) => (typeof expired === 'number' ? timeText(expired * 1000) : A.never)
          },
          { head: '', cell: (row) => <RowActions row={row} onMade={setMade} onDone={reload} /> }
        ]}
      />
    </>
  );
}

function StateOf({ row: { status, expired } }: { readonly row: Application }) {
  if (!status) return <Badge kind="quiet">{A.inactive}</Badge>;
  const isOver = typeof expired === 'number' && expired * 1000 <= Date.now();
  return <Badge kind={isOver ? 'warn' : 'good'}>{isOver ? A.expired : A.active}</Badge>;
}

function Add({ onMade }: { readonly onMade: (shown: Shown) => void }) {
  const sent = ({ app_id = '', ...texts }: FieldTexts) => ({
    app_id,
    ...bodyOf({ ...texts, name: texts.name || app_id })
  });
  return (
    <Action
      name="add"
      label={A.addApp}
      submit={A.add}
      fields={[{ name: 'app_id', label: A.appId, isRequired: true, help: A.appIdHelp }, ...NAMED]}
      done={A.appAdded}
      run={async (texts) => {
        const { data } = await request('POST', '/apps', { body: sent(texts) });
        onMade({ id: texts.app_id ?? '', secret: (data as { readonly secret: string }).secret });
      }}
    >
      {(texts) => {
        const { app_id = '', name = '', desc = '', expired = '' } = texts;
        const isOfCtl = desc === '' && expired === '';
        return (
          <CopyAs
            request={{ method: 'POST', path: '/apps', body: sent(texts) }}
            ctl={isOfCtl ? ['apps', 'add', '--name', name || app_id, '--', app_id] : undefined}
          />
        );
      }}
    </Action>
  );
}

function SecretOnce({ shown, onStored }: { readonly shown: Shown; readonly onStored: () => void }) {
  return (
    <div class="panel" role="status">
      <p>{A.secretOnce(shown.id)}</p>
      <p>
        <code>{shown.secret}</code> <CopyButton text={shown.secret} />
      </p>
      <div class="form-buttons">
        <button type="button" onClick={onStored}>
          {A.secretKept}
        </button>
      </div>
    </div>
  );
}

function RowActions({
  row,
  onMade,
  onDone
}: {
  readonly row: Application;
  readonly onMade: (shown: Shown) => void;
  readonly onDone: () => void;
}) {
  const { app_id, name, desc, status, expired } = row;
  const path = `/apps/${encodeURIComponent(app_id)}`;
  const change = (body: object) => request('PUT', '/apps/{appid}', { params: { appid: app_id }, body });
  const until = typeof expired === 'number' ? inputTime(new Date(expired * 1000).toISOString()) : '';
  return (
    <div class="head-actions row-actions">
      <Action
        label={A.changeApp}
        title={A.changeAppOf(app_id)}
        submit={A.save}
        kind="small"
        fields={[...NAMED, ENABLED]}
        initial={{ name, desc, status: `${status}`, expired: until }}
        done={A.appChanged}
        run={(texts) => change(bodyOf(texts))}
        onDone={onDone}
      >
        {(texts) => <CopyAs request={{ method: 'PUT', path, body: bodyOf(texts) }} />}
      </Action>
      <Action
        label={A.newSecret}
        title={A.newSecretOf(app_id)}
        kind="small"
        text={A.newSecretText}
        done={A.appChanged}
        run={async () => {
          const secret = randomText();
          await change({ secret });
          onMade({ id: app_id, secret });
        }}
      />
      <Removal path={path} title={A.removeApp} of={app_id} text={A.removeAppText} done={A.appRemoved} onDone={onDone}>
        <CopyAs request={{ method: 'DELETE', path }} ctl={['apps', 'remove', '--', app_id]} />
      </Removal>
    </div>
  );
}

/** A random secret, as the broker makes them. */
function randomText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}
