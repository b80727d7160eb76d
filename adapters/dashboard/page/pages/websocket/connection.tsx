import { useEffect, useState } from 'preact/hooks';
import { isAllowedCode } from '../../../../../lib/packets/allowed-codes.ts';
import { reasonName } from '../../../../../lib/packets/reason-codes.ts';
import type { Properties } from '../../../../../lib/packets/types.ts';
import {
  connect,
  connectNow,
  disconnect,
  end,
  type MqttState,
  mqttState,
  type Settings
} from '../../app/mqtt/client.ts';
import { isAdministrator, session } from '../../app/session.ts';
import { timeText } from '../../model/format.ts';
import { type PayloadForm, payloadBytes, propertiesIn } from '../../model/mqtt.ts';
import { codeText, packetRow } from '../../model/mqtt-log.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Badge, Facts } from '../../parts/facts.tsx';
import { Field, type FieldRow, Form } from '../../parts/fields.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';
import { ChallengeDialog, DATA, Reauthenticate } from './authentication.tsx';
import { type Choices, Fields, OtherProblem, propertyRows, valuesOf } from './fields.tsx';
import { MESSAGE_FIELDS } from './publish.tsx';

const M = T.websocket;

const FIELDS: readonly FieldRow[] = [
  {
    name: 'v',
    label: M.version,
    type: 'choice',
    choices: [
      ['', 'MQTT 5'],
      ['4', 'MQTT 3.1.1']
    ]
  },
  { name: 'id', label: M.clientId, help: M.clientIdHelp },
  { name: 'user', label: M.username }
];
const PASSWORD: FieldRow = { name: 'password', label: M.password, type: 'secret', help: M.secretHelp };
const SESSION_FIELDS: readonly FieldRow[] = [
  {
    name: 'clean',
    label: M.clean,
    type: 'choice',
    choices: [
      ['', M.cleanChoices.start],
      ['no', M.cleanChoices.resume]
    ]
  },
  { name: 'keepalive', label: M.keepalive, type: 'number', min: 0, max: 65_535, placeholder: '60' },
  {
    name: 'again',
    label: M.reconnects,
    type: 'choice',
    help: M.reconnectHelp,
    choices: [
      ['', M.reconnectChoices.yes],
      ['no', M.reconnectChoices.no]
    ]
  }
];
const PROPERTY_FIELDS = propertyRows('connect', '', ['authenticationData']);
const WILL_FIELDS = MESSAGE_FIELDS.map((row) => ({ ...row, name: `will.${row.name}` }));
const WILL_PROPERTIES = propertyRows('will', 'will.');
const DEFAULT_KEEP_ALIVE_S = 60;

interface Secrets {
  readonly password?: string;
  readonly authenticationData?: string;
}

/** The settings in the fields. @throws FieldError */
function settingsOf(form: Choices, secrets: Secrets): Settings {
  const isFive = form.get('v') !== '4';
  const values = { ...valuesOf(form, [...PROPERTY_FIELDS, ...WILL_PROPERTIES]), ...secrets };
  const properties = isFive ? propertiesIn('connect', values, '') : undefined;
  const [user, keepalive] = [form.get('user'), form.get('keepalive')];
  const topic = form.get('will.topic');
  const willProperties = isFive ? propertiesIn('will', values, 'will.') : undefined;
  const options = {
    protocolVersion: isFive ? 5 : 4,
    clientId: form.get('id'),
    clean: form.get('clean') !== 'no',
    keepalive: keepalive === '' ? DEFAULT_KEEP_ALIVE_S : Number(keepalive),
    ...(user !== '' && { username: user }),
    ...(secrets.password && { password: secrets.password }),
    ...(properties && { properties }),
    ...(topic !== '' && {
      will: {
        topic,
        payload: payloadBytes(
          (form.get('will.form') || 'text') as PayloadForm,
          form.get('will.payload'),
          'will.payload'
        ),
        qos: Number(form.get('will.qos')) as 0 | 1 | 2,
        retain: form.get('will.retain') === 'true',
        ...(willProperties && { properties: willProperties as Properties })
      }
    })
  } as const;
  return { options: options as Settings['options'], reconnects: form.get('again') !== 'no' };
}

/** The connection: its form, or its state. */
export function Connection({ form }: { readonly form: Choices }) {
  const state = mqttState.value;
  const kind = { closed: 'quiet', connecting: 'warn', open: 'good', waiting: 'bad', loggedOut: 'bad' } as const;
  return (
    <section class="panel mqtt-panel" aria-label={M.connection}>
      <div class="mqtt-title">
        <h2>{M.connection}</h2>
        <span role="status">
          <Badge kind={kind[state.is]}>{M.states[state.is]}</Badge>
        </span>
      </div>
      {state.is === 'closed' ? (
        <>
          {state.reason !== undefined && (
            <div class="problem" role="alert">
              <p class="problem-message">{state.reason}</p>
              {state.advice !== undefined && <p>{state.advice}</p>}
            </div>
          )}
          {state.reason === undefined && session.value?.upgrades === 'missing' && <p class="warning">{M.noUpgrades}</p>}
          <ConnectForm form={form} />
        </>
      ) : (
        <Connected state={state} isFive={form.get('v') !== '4'} />
      )}
      <ChallengeDialog />
    </section>
  );
}

function ConnectForm({ form }: { readonly form: Choices }) {
  const [secrets, setSecrets] = useState<Secrets>({});
  const [problem, setProblem] = useState<unknown>();
  const isFive = form.get('v') !== '4';
  const mayDo = isAdministrator.value;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    try {
      setProblem(undefined);
      connect(settingsOf(form, secrets));
    } catch (error) {
      setProblem(error);
    }
  };
  const isPropertyUsed = PROPERTY_FIELDS.some(({ name }) => form.get(name) !== '');
  const secret = (row: FieldRow, name: keyof Secrets) => (
    <Field
      field={row}
      value={secrets[name] ?? ''}
      onChange={(value) => setSecrets((before) => ({ ...before, [name]: value }))}
    />
  );
  return (
    <form class="mqtt-form" onSubmit={submit}>
      <div class="mqtt-fields">
        <Fields rows={FIELDS} form={form} problem={problem} />
        {secret(PASSWORD, 'password')}
        <Fields rows={SESSION_FIELDS} form={form} problem={problem} />
      </div>
      {isFive && (
        <details open={isPropertyUsed}>
          <summary>{M.connectProperties}</summary>
          <div class="mqtt-fields">
            <Fields rows={PROPERTY_FIELDS} form={form} problem={problem} />
            {secret(DATA, 'authenticationData')}
          </div>
        </details>
      )}
      <details open={form.get('will.topic') !== ''}>
        <summary>
          {M.will} {form.get('will.topic') !== '' && <Badge kind="quiet">{M.willUsed}</Badge>}
        </summary>
        <div class="mqtt-fields">
          <Fields rows={[...WILL_FIELDS, ...(isFive ? WILL_PROPERTIES : [])]} form={form} problem={problem} />
        </div>
      </details>
      <OtherProblem problem={problem} />
      {!mayDo && <p class="warning">{M.onlyAdministrators}</p>}
      <div class="form-buttons">
        <button type="submit" class="primary" {...forAdministrators()}>
          {M.connect}
        </button>
      </div>
    </form>
  );
}

function Connected({ state, isFive }: { readonly state: MqttState; readonly isFive: boolean }) {
  const [isLeaving, setLeaving] = useState(false);
  if (state.is === 'waiting') return <Waiting state={state} />;
  if (state.is !== 'open')
    return (
      <>
        {state.is === 'loggedOut' && (
          <p>
            {M.loggedOut} {M.loggedOutAbout}
          </p>
        )}
        <div class="form-buttons">
          <button type="button" onClick={end}>
            {M.giveUp}
          </button>
        </div>
      </>
    );
  const { properties } = packetRow('received', { cmd: 'connack', properties: { ...state.properties } }, String);
  return (
    <>
      <Facts
        rows={[
          [M.clientId, <Name key="id" of={state.clientId} />],
          [M.version, isFive ? 'MQTT 5' : 'MQTT 3.1.1'],
          [M.since, timeText(state.since)],
          [M.clean, state.isResumed ? M.resumed : M.started],
          ...properties.map(([name, value]) => [name, <Name key={name} of={value} />] as const)
        ]}
      />
      <p class="aside">{M.staysOpen}</p>
      <div class="form-buttons">
        <button type="button" onClick={() => (isFive ? setLeaving(true) : void disconnect(0, undefined))}>
          {M.disconnect}
        </button>
        {state.method !== undefined && <Reauthenticate />}
        <button type="button" class="danger" title={M.dropAbout} onClick={end}>
          {M.drop}
        </button>
      </div>
      {isLeaving && (
        <Dialog title={M.disconnectTitle} onClose={() => setLeaving(false)}>
          <Form
            fields={DISCONNECT_FIELDS}
            submit={M.disconnect}
            onCancel={() => setLeaving(false)}
            onSubmit={(values) =>
              disconnect(Number(values.reasonCode ?? 0), propertiesIn('disconnect', values, '') as Properties)
            }
          />
        </Dialog>
      )}
    </>
  );
}

/** The reason codes of DISCONNECT that a client may send. */
const DISCONNECT_CODES = Array.from({ length: 256 }, (_, code) => code).filter((code) =>
  isAllowedCode('disconnect', code)
);

const DISCONNECT_FIELDS: readonly FieldRow[] = [
  {
    name: 'reasonCode',
    label: M.reasonCode,
    type: 'choice',
    choices: DISCONNECT_CODES.map((code) => [`${code}`, code === 0 ? M.normal : codeText(code, reasonName)])
  },
  ...propertyRows('disconnect', '')
];

function Waiting({ state }: { readonly state: Extract<MqttState, { is: 'waiting' }> }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [state]);
  return (
    <>
      <div class="problem">
        <p class="problem-message">{state.reason}</p>
        <p class="number">{M.again(Math.max(0, Math.ceil((state.againAt - now) / 1_000)))}</p>
      </div>
      <div class="form-buttons">
        <button type="button" onClick={connectNow}>
          {M.retryNow}
        </button>
        <button type="button" onClick={end}>
          {M.giveUp}
        </button>
      </div>
    </>
  );
}
