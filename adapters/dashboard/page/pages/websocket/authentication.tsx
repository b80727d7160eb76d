import { useState } from 'preact/hooks';
import type { Properties } from '../../../../../lib/packets/types.ts';
import { challenge, end, reauthenticate } from '../../app/mqtt/client.ts';
import { propertiesIn } from '../../model/mqtt.ts';
import { base64Of, packetRow } from '../../model/mqtt-log.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import { type FieldRow, type FieldTexts, Form } from '../../parts/fields.tsx';
import { Name } from '../../parts/name.tsx';
import { notify } from '../../parts/notices.tsx';
import { PayloadView } from '../../parts/value.tsx';
import { T } from '../../texts.ts';
import { propertyRows } from './fields.tsx';

const M = T.websocket;

/** The field of Authentication Data, in every packet. */
export const DATA: FieldRow = {
  name: 'authenticationData',
  label: M.properties.authenticationData,
  type: 'secret',
  help: M.propertyHelps.authenticationData
};
const FIELDS: readonly FieldRow[] = [DATA, ...propertyRows('auth', '', [DATA.name])];

const answerOf = (values: FieldTexts) => (propertiesIn('auth', values, '') ?? {}) as Properties;

/** Asks for the answer to a challenge of the broker, while there is one. */
export function ChallengeDialog() {
  const asked = challenge.value;
  if (asked === undefined) return null;
  const { authenticationData, ...others } = asked.properties;
  const { properties } = packetRow('received', { cmd: 'auth', properties: others }, String);
  return (
    <Dialog title={M.challenge} onClose={end}>
      <div class="action">
        <p>{M.challengeAbout}</p>
        <Facts rows={properties.map(([name, value]) => [name, <Name key={name} of={value} max={400} />])} />
        <h3>{M.properties.authenticationData}</h3>
        {authenticationData === undefined ? (
          <p class="aside">{M.noData}</p>
        ) : (
          <PayloadView of={{ payload: base64Of(authenticationData), encoding: 'base64' }} />
        )}
        <Form
          key={asked}
          fields={FIELDS}
          submit={M.answer}
          onCancel={end}
          onSubmit={async (values) => asked.answer(answerOf(values))}
        />
      </div>
    </Dialog>
  );
}

/** A button that authenticates again over the same connection. */
export function Reauthenticate() {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {M.reauthenticate}
      </button>
      {isOpen && (
        <Dialog title={M.reauthenticate} onClose={close}>
          <div class="action">
            <p>{M.reauthenticateAbout}</p>
            <Form
              fields={FIELDS}
              submit={M.reauthenticate}
              onCancel={close}
              onSubmit={async (values) => {
                await reauthenticate(answerOf(values));
                close();
                notify(M.reauthenticated);
              }}
            />
          </div>
        </Dialog>
      )}
    </>
  );
}
