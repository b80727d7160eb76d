import { request } from '../../app/requests.ts';
import { isAdministrator } from '../../app/session.ts';
import { type ConnectorKind, settingsOf, textsOf } from '../../model/connectors.ts';
import { HIDDEN, withoutSecrets } from '../../model/copy.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import type { FieldRow, FieldTexts } from '../../parts/fields.tsx';
import { T } from '../../texts.ts';
import { type ConnectorRow, PATHS } from './rows.tsx';

const C = T.connectors;
const F = C.fields;

const NAME: FieldRow = { name: 'name', label: C.name, isRequired: true, help: F.nameHelp };
const PERSISTED: FieldRow = {
  name: 'isPersisted',
  label: F.isPersisted,
  type: 'choice',
  choices: [
    ['', F.inMemory],
    ['true', F.inStore]
  ]
};
const MORE: FieldRow = { name: 'more', label: F.more, type: 'lines', rows: 3, help: F.moreHelp };

const FIELDS: Readonly<Record<ConnectorKind, readonly FieldRow[]>> = {
  webhook: [
    { name: 'url', label: F.url, isRequired: true, placeholder: 'https://…/events' },
    { name: 'rules', label: F.rules, type: 'lines', rows: 3, help: F.rulesHelp, placeholder: 'client.connected' },
    { name: 'headers', label: F.headers, type: 'lines', rows: 3, help: F.headersHelp },
    { name: 'secret', label: F.secret, type: 'secret', help: F.secretHelp },
    {
      name: 'encodePayload',
      label: F.encodePayload,
      type: 'choice',
      choices: [
        ['', F.asText],
        ['base64', 'Base64'],
        ['base62', 'Base62']
      ]
    },
    PERSISTED,
    MORE
  ],
  bridge: [
    { name: 'url', label: F.server, isRequired: true, placeholder: 'mqtts://central.example.com' },
    { name: 'username', label: T.clients.user },
    { name: 'password', label: T.login.password, type: 'secret' },
    { name: 'out', label: F.out, type: 'lines', rows: 3, help: F.topicsHelp, placeholder: 'sensors/#' },
    { name: 'in', label: F.in, type: 'lines', rows: 3, placeholder: 'commands/#' },
    {
      name: 'version',
      label: F.version,
      type: 'choice',
      choices: [
        ['', 'MQTT 5.0'],
        ['4', 'MQTT 3.1.1']
      ]
    },
    PERSISTED,
    MORE
  ]
};

/** Fields that are shown on request while they are empty. */
const MINOR = new Set(['encodePayload', 'version', 'isPersisted', 'more']);

function fieldsOf(kind: ConnectorKind, texts: FieldTexts): readonly FieldRow[] {
  return FIELDS[kind].map((field) => ({
    ...field,
    isMinor: MINOR.has(field.name) && (texts[field.name] ?? '') === ''
  }));
}

/** Read the fields. @throws Error that names the field which is not JSON */
function read(kind: ConnectorKind, texts: FieldTexts, before?: ConnectorRow['settings']) {
  try {
    return settingsOf(kind, texts, before);
  } catch (error) {
    throw new Error(F.notJson((error as Error).message));
  }
}

/** Make a connector. */
export function Add({ kind, onDone }: { readonly kind: ConnectorKind; readonly onDone: () => void }) {
  const bodyOf = (texts: FieldTexts) => ({ name: texts.name ?? '', ...read(kind, texts) });
  return (
    <Action
      name="add"
      label={C.add[kind]}
      submit={C.make}
      fields={[NAME, ...fieldsOf(kind, {})]}
      done={C.added[kind]}
      run={(texts) => request('POST', PATHS[kind], { body: bodyOf(texts) })}
      onDone={onDone}
    >
      {(texts) => (
        <Copies method="POST" path={PATHS[kind]} bodyOf={() => bodyOf(texts)} ctl={[`${kind}s`, 'add', '-']} />
      )}
    </Action>
  );
}

/** An action on a connector. */
export interface ConnectorAction {
  readonly kind: ConnectorKind;
  readonly row: ConnectorRow;
  readonly onDone: () => void;
}

/** Change the options of a connector. Those of the app cannot be changed here. */
export function Change({ kind, row: { name, settings }, onDone }: ConnectorAction) {
  if (settings === undefined) return <OfApp label={C.change} />;
  const texts = textsOf(kind, settings);
  const fields = fieldsOf(kind, texts).map((field) =>
    settings[field.name] === HIDDEN ? { ...field, placeholder: F.kept, help: F.keptHelp } : field
  );
  const path = `${PATHS[kind]}/${encodeURIComponent(name)}`;
  return (
    <Action
      label={C.change}
      title={C.changeOf(name)}
      submit={C.save}
      text={C.changeTexts[kind]}
      fields={fields}
      initial={texts}
      done={C.changed(name)}
      run={(texts) => request('PUT', `${PATHS[kind]}/{name}`, { params: { name }, body: read(kind, texts, settings) })}
      onDone={onDone}
    >
      {(texts) => (
        <Copies
          method="PUT"
          path={path}
          bodyOf={() => read(kind, texts, settings)}
          ctl={[`${kind}s`, 'change', '--', name, '-']}
        />
      )}
    </Action>
  );
}

/** A button that cannot be used, because the app owns the connector. */
export function OfApp({ label }: { readonly label: string }) {
  return (
    <button type="button" disabled title={isAdministrator.value ? C.ofAppAbout : T.errors.forbidden}>
      {label}
    </button>
  );
}

/** The commands of a request, with placeholders for secrets. Nothing while a field is not valid. */
function Copies({
  method,
  path,
  bodyOf,
  ctl
}: {
  readonly method: 'POST' | 'PUT';
  readonly path: string;
  readonly bodyOf: () => Readonly<Record<string, unknown>>;
  readonly ctl: readonly string[];
}) {
  let body: unknown;
  try {
    body = withoutSecrets(bodyOf());
  } catch {
    return null;
  }
  return <CopyAs request={{ method, path, body }} ctl={ctl} input={JSON.stringify(body)} />;
}
