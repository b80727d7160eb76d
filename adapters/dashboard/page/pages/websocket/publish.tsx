import { useState } from 'preact/hooks';
import { mqttState, publish } from '../../app/mqtt/client.ts';
import { PAYLOAD_FORMS, type PayloadForm, payloadBytes, propertiesIn } from '../../model/mqtt.ts';
import type { FieldRow } from '../../parts/fields.tsx';
import { T } from '../../texts.ts';
import { type Choices, PacketForm, propertyRows, valuesOf } from './fields.tsx';

const M = T.websocket;

/** The fields of a message, also of a will. */
export const MESSAGE_FIELDS: readonly FieldRow[] = [
  { name: 'topic', label: M.topic },
  { name: 'qos', label: M.qos, type: 'choice', choices: Object.entries(M.qosChoices) },
  {
    name: 'form',
    label: M.payloadForm,
    type: 'choice',
    choices: PAYLOAD_FORMS.map((form) => [form, M.payloadForms[form]] as const)
  },
  { name: 'retain', label: M.retain, type: 'flag' },
  { name: 'payload', label: M.payload, type: 'lines' }
];
const FIELDS = MESSAGE_FIELDS.map((row) => ({ ...row, name: `pub.${row.name}` }));
const PROPERTY_FIELDS = propertyRows('publish', 'pub.');

/** The form that publishes a message. */
export function Publish({ form }: { readonly form: Choices }) {
  const [problem, setProblem] = useState<unknown>();
  const [result, setResult] = useState('');
  const isOpen = mqttState.value.is === 'open';
  const isFive = form.get('v') !== '4';
  const submit = async () => {
    setProblem(undefined);
    try {
      const values = valuesOf(form, PROPERTY_FIELDS);
      const properties = isFive ? propertiesIn('publish', values, 'pub.') : undefined;
      const payload = payloadBytes(
        (form.get('pub.form') || 'text') as PayloadForm,
        form.get('pub.payload'),
        'pub.payload'
      );
      setResult(M.publishing);
      const said = await publish(form.get('pub.topic'), payload, {
        qos: Number(form.get('pub.qos')) as 0 | 1 | 2,
        retain: form.get('pub.retain') === 'true',
        ...(properties && { properties })
      });
      setResult(said);
    } catch (error) {
      setResult('');
      setProblem(error);
    }
  };
  const isUsed = PROPERTY_FIELDS.some(({ name }) => form.get(name) !== '');
  return (
    <section class="panel mqtt-panel" aria-label={M.publish}>
      <h2>{M.publish}</h2>
      <PacketForm
        form={form}
        rows={FIELDS}
        furtherRows={PROPERTY_FIELDS}
        further={M.publishProperties}
        isUsed={isUsed}
        send={M.publish}
        isOpen={isOpen}
        problem={problem}
        onSubmit={submit}
      >
        <span class="aside" role="status">
          {result}
        </span>
      </PacketForm>
    </section>
  );
}
