import { useState } from 'preact/hooks';
import { choice, hrefOf, place } from '../../app/place.ts';
import { request } from '../../app/requests.ts';
import { isAdministrator } from '../../app/session.ts';
import type { ViewName } from '../../model/places.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { List } from '../../parts/list.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;

/** A kind of records with passwords of MQTT clients. */
interface Kind {
  readonly label: string;
  /** The path of the list. */
  readonly path: string;
  /** The field with the name. */
  readonly field: string;
  readonly nameLabel: string;
  readonly about: string;
  /** Records say whether access control applies, and only administrators may list them. */
  readonly hasSuperusers: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  username: {
    label: A.userNames,
    path: '/auth_username',
    field: 'username',
    nameLabel: T.clients.user,
    about: A.userNamesAbout,
    hasSuperusers: false
  },
  clientid: {
    label: A.clientIds,
    path: '/auth_clientid',
    field: 'clientid',
    nameLabel: T.clients.id,
    about: A.clientIdsAbout,
    hasSuperusers: false
  },
  login: {
    label: A.logins,
    path: '/auth_user',
    field: 'login',
    nameLabel: T.clients.user,
    about: A.loginsAbout,
    hasSuperusers: true
  }
};

const PASSWORD: FieldRow = { name: 'password', label: T.login.password, type: 'secret', isRequired: true };
const SUPERUSER: FieldRow = {
  name: 'is_superuser',
  label: A.isSuperuser,
  type: 'flag',
  help: A.isSuperuserHelp
};

/** The body of a request that adds or changes a record. */
function bodyOf({ hasSuperusers }: Kind, { password = '', is_superuser = '' }: FieldTexts) {
  return { password, ...(hasSuperusers && { is_superuser: is_superuser === 'true' }) };
}

/** The body that is copied: without the password. */
function copied(kind: Kind, values: FieldTexts) {
  return { ...bodyOf(kind, values), password: '<password>' };
}

type Row = Readonly<Record<string, unknown>>;

/** The user names and client ids with passwords, with which MQTT clients connect. */
export function MqttUsers() {
  const chosen = Object.hasOwn(KINDS, choice('kind')) ? choice('kind') : 'username';
  const kind = KINDS[chosen];
  return (
    <>
      <Kinds chosen={chosen} />
      <p class="aside">{kind.about}</p>
      {kind.hasSuperusers && !isAdministrator.value ? (
        <p class="warning">{A.viewers}</p>
      ) : (
        <Records key={chosen} kind={kind} />
      )}
    </>
  );
}

function Kinds({ chosen }: { readonly chosen: string }) {
  const { view, choices } = place.value;
  return (
    <nav class="tabs" aria-label={A.kinds}>
      {Object.entries(KINDS).map(([name, { label }]) => (
        <a
          key={name}
          href={hrefOf(view as ViewName, { ...choices, page: undefined, kind: name })}
          aria-current={name === chosen ? 'page' : undefined}
        >
          {label}
        </a>
      ))}
    </nav>
  );
}

function Records({ kind }: { readonly kind: Kind }) {
  const { path, field, nameLabel, hasSuperusers } = kind;
  const [version, setVersion] = useState(0);
  const reload = () => setVersion((before) => before + 1);
  const nameOf = (row: Row) => `${row[field]}`;
  const more = hasSuperusers ? [SUPERUSER] : [];
  return (
    <>
      <div class="section-actions">
        <CopyAs request={{ path }} />
        <Action
          name="add"
          label={A.addMqttUser}
          text={A.addMqttUserText}
          submit={A.add}
          fields={[{ name: field, label: nameLabel, isRequired: true }, PASSWORD, ...more]}
          done={A.mqttUserAdded}
          run={(values) => request('POST', path, { body: { [field]: values[field] ?? '', ...bodyOf(kind, values) } })}
          onDone={reload}
        >
          {(values) => (
            <CopyAs
              request={{ method: 'POST', path, body: { [field]: values[field] ?? '', ...copied(kind, values) } }}
            />
          )}
        </Action>
      </div>
      <List<Row>
        caption={A.mqttUsers}
        conditions={`${version}`}
        load={async ({ _limit, _page }, signal) => {
          const { data, meta } = await request('GET', path, { query: { _limit, _page }, signal });
          return { data: data as readonly Row[], meta };
        }}
        keyOf={nameOf}
        empty={A.noMqttUsers}
        columns={[
          { head: nameLabel, isWide: true, cell: (row) => <Name of={nameOf(row)} /> },
          ...(hasSuperusers
            ? [{ head: A.superuserHead, cell: (row: Row) => (row.is_superuser === true ? T.form.yes : T.form.no) }]
            : []),
          { head: '', cell: (row) => <RecordActions kind={kind} row={row} onDone={reload} /> }
        ]}
      />
    </>
  );
}

function RecordActions({ kind, row, onDone }: { readonly kind: Kind; readonly row: Row; readonly onDone: () => void }) {
  const { path, field, hasSuperusers } = kind;
  const name = `${row[field]}`;
  const single = `${path}/${encodeURIComponent(name)}`;
  return (
    <div class="head-actions row-actions">
      <Action
        label={A.newPassword}
        submit={T.form.set}
        title={A.newPasswordOf(name)}
        text={A.newMqttPasswordText}
        kind="small"
        fields={[PASSWORD, ...(hasSuperusers ? [SUPERUSER] : [])]}
        initial={{ is_superuser: row.is_superuser === true ? 'true' : '' }}
        done={A.mqttUserChanged}
        run={(values) => request('PUT', `${path}/{name}`, { params: { name }, body: bodyOf(kind, values) })}
        onDone={onDone}
      >
        {(values) => <CopyAs request={{ method: 'PUT', path: single, body: copied(kind, values) }} />}
      </Action>
      <Removal
        path={single}
        title={A.removeMqttUserOf(name)}
        text={A.removeMqttUserText}
        done={A.mqttUserRemoved}
        onDone={onDone}
      >
        <CopyAs request={{ method: 'DELETE', path: single }} />
      </Removal>
    </div>
  );
}
