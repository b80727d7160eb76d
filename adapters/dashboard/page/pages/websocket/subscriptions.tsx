import { useState } from 'preact/hooks';
import type { Properties } from '../../../../../lib/packets/types.ts';
import { mqttState, subscribe, subscriptions, unsubscribe } from '../../app/mqtt/client.ts';
import { hrefOf } from '../../app/place.ts';
import { propertiesIn } from '../../model/mqtt.ts';
import { unlessPrevented } from '../../parts/confirm.tsx';
import type { FieldRow } from '../../parts/fields.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';
import { type Choices, PacketForm, propertyRows, valuesOf } from './fields.tsx';

const M = T.websocket;

const FIELDS: readonly FieldRow[] = [
  { name: 'sub.filter', label: M.filter, placeholder: '#' },
  { name: 'sub.qos', label: M.qos, type: 'choice', choices: Object.entries(M.qosChoices) }
];
const OPTION_FIELDS: readonly FieldRow[] = [
  { name: 'sub.noLocal', label: M.noLocal, type: 'flag', help: M.noLocalHelp },
  { name: 'sub.asPublished', label: M.retainAsPublished, type: 'flag' },
  {
    name: 'sub.retained',
    label: M.retainHandling,
    type: 'choice',
    choices: Object.entries(M.retainHandlingChoices)
  },
  ...propertyRows('subscribe', 'sub.'),
  ...propertyRows('unsubscribe', 'unsub.').map((row) => ({ ...row, label: M.unsubscribeProperties }))
];

/** The subscriptions, each with its colour in the log, and the form that makes one. */
export function Subscriptions({ form }: { readonly form: Choices }) {
  const [problem, setProblem] = useState<unknown>();
  const isOpen = mqttState.value.is === 'open';
  const isFive = form.get('v') !== '4';
  const submit = async () => {
    setProblem(undefined);
    try {
      const properties = isFive ? propertiesIn('subscribe', valuesOf(form, OPTION_FIELDS), 'sub.') : undefined;
      const options = {
        noLocal: form.get('sub.noLocal') === 'true',
        retainAsPublished: form.get('sub.asPublished') === 'true',
        retainHandling: Number(form.get('sub.retained')) as 0 | 1 | 2
      };
      const qos = Number(form.get('sub.qos')) as 0 | 1 | 2;
      await subscribe({ topic: form.get('sub.filter') || '#', qos, ...(isFive && options) }, properties as Properties);
    } catch (error) {
      setProblem(error);
    }
  };
  const remove = async (filter: string) => {
    setProblem(undefined);
    try {
      const properties = isFive ? propertiesIn('unsubscribe', valuesOf(form, OPTION_FIELDS), 'unsub.') : undefined;
      await unsubscribe(filter, properties as Properties);
    } catch (error) {
      setProblem(error);
    }
  };
  const isUsed = OPTION_FIELDS.some(({ name }) => !['', '0'].includes(form.get(name)));
  return (
    <section class="panel mqtt-panel" aria-label={M.subscriptions}>
      <h2>{M.subscriptions}</h2>
      {subscriptions.value.length === 0 ? (
        <NoSubscriptions />
      ) : (
        <ul class="mqtt-subscriptions">
          {subscriptions.value.map(({ input: { topic }, granted, color }) => (
            <li key={topic}>
              <span class={`chart-mark line-${color}`} aria-hidden="true" />
              <span class="mqtt-filter">
                <Name of={topic} />
              </span>
              <span class="aside">
                {M.qos} {granted}
              </span>
              <button
                type="button"
                class="small"
                {...unlessPrevented(isOpen ? undefined : M.notConnected)}
                onClick={() => void remove(topic)}
              >
                {M.unsubscribe}
              </button>
            </li>
          ))}
        </ul>
      )}
      <PacketForm
        form={form}
        rows={FIELDS}
        furtherRows={OPTION_FIELDS}
        further={M.subscribeOptions}
        isUsed={isUsed}
        send={M.subscribe}
        isOpen={isOpen}
        problem={problem}
        onSubmit={submit}
      />
    </section>
  );
}

/** The subscriptions of a session that was resumed are not known to the page if another client has made them. */
function NoSubscriptions() {
  const state = mqttState.value;
  if (state.is !== 'open' || !state.isResumed) return <p class="aside">{M.noSubscriptions}</p>;
  return (
    <p class="aside">
      {M.unknownSubscriptions}{' '}
      <a href={hrefOf('client', { id: state.clientId, tab: 'subscriptions' })}>{M.sessionSubscriptions}</a>
    </p>
  );
}
